"""A scripted server that refuses what the real service of each API would refuse. `tests/support/rules` has the
rules."""

from collections.abc import Iterable, Sequence
from typing import Any

from codex_py import testing
from codex_py.testing.rules import Rules
from codex_py.testing.server import Script
from tests.support.rules.anthropic import Signatures, check_anthropic
from tests.support.rules.chat import check_chat
from tests.support.rules.text import check_text
from tests.support.rules.thread import anthropic_prefix, chat_prefix
from tests.support.text_calls import by_model_without_tools, text_tag


class ServiceRules(Rules):
    """The rules of the Responses API, of Chat Completions and of Anthropic's Messages, by the path of a request."""

    def __init__(self, *, system_first: bool, text_tools: bool) -> None:
        """
        Args:
            system_first: refuse Chat's system messages behind the first, as strict templates do.
            text_tools: refuse tools; results in the text of messages need a call before them.
        """
        self._system_first = system_first
        self._text_tools = text_tools
        self._signatures = Signatures()

    def check(self, request: testing.RecordedRequest) -> None:
        body = request.fields
        match _api(request):
            case "completions":
                check_chat(body, system_first=self._system_first)
            case "messages":
                check_anthropic(body, request.headers, self._signatures)
            case _:
                super().check(request)
        if self._text_tools:
            check_text(body.get("messages") or body["input"], text_tag(request))
            if body.get("tools"):
                raise testing.Refusal(f"{body.get('model')!r} does not support tools")

    def prefix(self, request: testing.RecordedRequest) -> Sequence[Any]:
        match _api(request):
            case "completions":
                return chat_prefix(request.fields)
            case "messages":
                return anthropic_prefix(request.fields)
            case _:
                return super().prefix(request)

    def answered(self, stream: bytes) -> None:
        self._signatures.read(stream)


def _api(request: testing.RecordedRequest) -> str:
    return request.path.partition("?")[0].rpartition("/")[2]


class ScriptedServer(testing.ScriptedServer):
    """Takes the arguments of the public one, `system_first` of `ServiceRules`, and `text_tools`: the model cannot call
    tools, so that its calls are written into the text of messages."""

    def __init__(
        self,
        script: Iterable[Script] = (),
        *,
        system_first: bool = False,
        text_tools: bool = False,
        **options: Any,
    ) -> None:
        self._text_tools = text_tools
        rules = ServiceRules(system_first=system_first, text_tools=text_tools)
        super().__init__(script, rules=rules, **options)

    def config_toml(self, *, wire_api: str | None = None, **settings: Any) -> str:
        default = "text" if self._text_tools else "responses"
        return super().config_toml(wire_api=wire_api or default, **settings)

    def add(self, *replies: Script) -> None:
        super().add(
            *map(by_model_without_tools, replies) if self._text_tools else replies
        )
