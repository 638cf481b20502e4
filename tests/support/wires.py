"""Sessions with a scripted model that is reached by any wire, and what they leave behind."""

import asyncio
import base64
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, cast

from codex_py.app.options import SessionOptions
from codex_py.app.session import open_session
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.protocol.event_data import event_data
from codex_py.protocol.events import Event, EventSink
from codex_py.protocol.json_fields import JsonObject, objects
from codex_py.rollout.reader import read_session
from codex_py.testing import (
    RecordedRequest,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
    ev_reasoning,
)
from codex_py.testing.server import Script
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

Work = Callable[[Session], Awaitable[object]]

WIRES: Mapping[str, str] = {
    "responses": 'wire_api = "responses"',
    "chat": 'wire_api = "chat"',
    "anthropic": 'wire_api = "anthropic"',
    "text": 'wire_api = "text"',
    "functions": 'wire_api = "responses"\nprofile = { function_tools_only = true }',
    "strict chat": 'wire_api = "chat"\nprofile = { tool_ids = "mistral", replay_reasoning = "required", '
    "name_on_tool_message = true, assistant_after_tool = true }",
    "thinking": 'wire_api = "anthropic"\nprofile = { thinking = "budget", cache_marks = false }',
    "text over responses": 'wire_api = "responses"\nprofile = { tools = "text" }',
    "text over anthropic": 'wire_api = "anthropic"\nprofile = { tools = "text" }',
}
"""The settings of a provider for each wire, and for profiles of it."""
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
ADD = '*** Begin Patch\n*** Add File: a.txt\n+one "two"\n+<b>&amp;</b>\n*** End Patch'
DONE = [*ev_message("Done."), ev_completed()]
_CHANGES = re.compile(r"(Chunk ID: )\w+|(Wall time: )[\d.]+")
_ONE_WIRE_S_OWN = {"id", "status", "provider_data", "encrypted_content", "annotations"}
_TEXT_RESULT = re.compile(r"<tool_result [^>]*>\n(.*?)\n</tool_result>", re.DOTALL)


def runs(call_id: str, command: str, index: int = 0) -> list[Any]:
    return ev_function_call(call_id, "exec_command", {"cmd": command}, index=index)


def ends(*events: Any) -> list[Any]:
    return [*events, ev_completed()]


EVERYTHING = [
    ends(
        *ev_reasoning("Look first.", encrypted="sealed"),
        *ev_message("Look:", index=1),
        *runs("c1", "echo hi", 2),
        *ev_custom_tool_call("c2", "apply_patch", ADD, index=3),
        *ev_function_call("c3", "view_image", {"path": "a.png"}, index=4),
    ),
    ends(*ev_reasoning("Once more.", encrypted="sealed"), *runs("c4", "exit 3", 1)),
    DONE,
]
"""A session with all that a history can have."""


def workplace(folder: Path) -> Workplace:
    """An empty home, and a folder to work in with an image."""
    folder.mkdir(parents=True, exist_ok=True)
    place = Workplace.below(folder)
    (place.cwd / "a.png").write_bytes(PNG)
    return place


class AnyWire:
    """A provider for each wire, of its name, with a server of its own. Use it as a context manager."""

    def __init__(
        self, place: Workplace, *, retries: int = 0, check_prefix: bool = True
    ) -> None:
        self._place = place
        self._stack = ExitStack()
        self.servers = {
            wire: ScriptedServer(
                check_prefix=check_prefix,
                system_first=True,
                text_tools=wire.startswith("text"),
            )
            for wire in WIRES
        }
        self.events: list[JsonObject] = []
        """Of all sessions, as `exec --json` prints them."""
        tables = [
            f'[model_providers."{wire}"]\nname = "{wire}"\nbase_url = "{server.base_url}"\n'
            f'env_key = "MOCK_KEY"\n{WIRES[wire]}\nrequest_max_retries = {retries}\n'
            f"stream_max_retries = {retries}\n"
            for wire, server in self.servers.items()
        ]
        text = "\n".join(['model = "gpt-5.5"', *tables])
        (place.home / "config.toml").write_text(text, encoding="utf-8")

    def __enter__(self) -> Self:
        for server in self.servers.values():
            self._stack.enter_context(server)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def session(
        self,
        wire: str,
        work: Work,
        *replies: Script,
        resume: str | None = None,
        fork: bool = False,
        sink: EventSink = lambda _: None,
        flags: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> str:
        """Do something in a session with the provider of this wire; its id.

        Args:
            flags: more of the configuration.
            parts: those of `open_session`.
        """
        self.servers[wire].add(*replies)
        env = environment(self._place.home)
        more = {
            "sandbox_mode": "danger-full-access",
            "model_provider": wire,
            **(flags or {}),
        }
        config = load_config(cwd=self._place.cwd, environment=env, flags=more)

        def take(event: Event) -> None:
            if (data := event_data(event)) is not None:
                self.events.append(data)
            sink(event)

        async def run() -> str:
            options = SessionOptions(resume=resume, fork=fork)
            async with open_session(
                config, options, take, environment=env, **parts
            ) as session:
                await work(session)
                return session.thread_id

        return asyncio.run(run())

    def prompt(self, wire: str, text: str, *replies: Script, **options: Any) -> str:
        """One turn. `options`: those of `session`."""
        return self.session(wire, lambda s: s.run_turn(text), *replies, **options)

    @property
    def requests(self) -> list[RecordedRequest]:
        """To all servers, oldest first."""
        every = [
            request for server in self.servers.values() for request in server.requests
        ]
        return sorted(every, key=lambda request: request.received_s)

    @property
    def cwd(self) -> Path:
        return self._place.cwd

    @property
    def types(self) -> Mapping[str, int]:
        """How often there was which event: calls that run side by side come in any order."""
        return Counter(event["type"] for event in self.events)

    @property
    def warnings(self) -> list[str]:
        items = [
            event["item"] for event in self.events if event["type"] == "item.completed"
        ]
        return [item["message"] for item in items if item["type"] == "error"]

    @property
    def last(self) -> JsonObject:
        """The event that ended the last turn."""
        return self.events[-1]

    @property
    def shown(self) -> list[JsonObject]:
        """The items that were completed, in the order of their beginning."""
        items: list[tuple[int, int, JsonObject]] = []
        sessions = 0
        for event in self.events:
            sessions += event["type"] == "thread.started"
            if event["type"] == "item.completed":
                item: JsonObject = event["item"]
                items.append((sessions, int(item["id"].removeprefix("item_")), item))
        return _same(
            [item for *_, item in sorted(items, key=lambda i: i[:2])], self.cwd
        )

    @property
    def files(self) -> dict[str, str]:
        """What is in the folder that the session works in."""
        paths = sorted(path for path in self._place.cwd.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self._place.cwd)): path.read_text(encoding="latin-1")
            for path in paths
        }

    @property
    def history(self) -> list[JsonObject]:
        """The items of the session file in their order, without what only one wire can have."""
        (path,) = self._place.rollouts()
        items = [json.loads(item) for item in read_session(path).items]
        # Some APIs have no reasoning without a text.
        kept = [
            item for item in items if item["type"] != "reasoning" or item["summary"]
        ]
        return _same(kept, self.cwd, _ONE_WIRE_S_OWN)


def results(request: RecordedRequest) -> list[str]:
    """The texts of all results of calls in a request, in their order."""
    return [_CHANGES.sub(r"\1\2#", text) for text in _results(request.body)]


def images(request: RecordedRequest) -> int:
    """How many images a request has."""
    return request.raw.count(b"data:image/") + request.raw.count(
        b'"media_type":"image/'
    )


def _results(body: JsonObject) -> Iterator[str]:
    for entry in body.get("input") or body["messages"]:
        content: Any = entry.get("content")
        if "output" in entry:
            yield _text(entry["output"])
        elif entry.get("role") == "tool":
            # Only a user can send the image.
            yield _text(content).replace(
                "(the result is the image in the next message)", ""
            )
        elif entry.get("role") == "user":
            yield from _TEXT_RESULT.findall(_text(content))
        for part in objects(content):
            if part.get("type") == "tool_result":
                yield _text(part["content"])


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in objects(content) if part.get("text"))


def _same(
    items: Sequence[JsonObject], cwd: Path, left_out: Collection[str] = ()
) -> list[JsonObject]:
    """Items without what differs from run to run. Calls are numbered."""
    ids: dict[str, str] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return _CHANGES.sub(r"\1\2#", value.replace(str(cwd), "CWD"))
        if isinstance(value, list):
            return [plain(part) for part in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        kept = {k: v for k, v in cast("JsonObject", value).items() if k not in left_out}
        fields = {key: plain(part) for key, part in kept.items()}
        if "call_id" in fields:
            fields["call_id"] = ids.setdefault(fields["call_id"], f"call {len(ids)}")
        return fields

    return [plain(item) for item in items]


def assert_same(ours: AnyWire, reference: AnyWire) -> None:
    assert ours.shown == reference.shown
    assert ours.types == reference.types
    assert ours.files == reference.files
    assert ours.history == reference.history
    for request in ours.requests:
        assert b"provider_data" not in request.raw
