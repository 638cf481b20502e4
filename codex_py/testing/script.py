"""A script of a model's answers: which one a request gets, and whether the request keeps the rules.

The path decides which API it speaks: `…/responses`, `…/chat/completions` (Chat Completions) or `…/messages`
(Anthropic). The same script is played in each: events of the Responses API are translated, others go out as they are.
A client that asks for no stream gets the whole answer as JSON.

Every request is checked by `Rules`: calls have one output each, and a request begins with the one before it of the same
thread. What breaks this is answered with status 400.
"""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from codex_py.testing.apis import APIS, RESPONSES, Api
from codex_py.testing.reply import Part, Pause, RenderedReply, Reply
from codex_py.testing.request import RecordedRequest
from codex_py.testing.rules import Refusal, Rules, prefix_problem
from codex_py.testing.whole import whole_reply

Script: TypeAlias = (
    Sequence[Part] | bytes | Reply | Callable[[RecordedRequest], "Script"]
)
"""One reply. Bytes are a whole stream; a function may look at the request, and wait."""


class ScriptedModel:
    """Plays one reply of the script for each POST, in order.

    Attributes:
        requests: the POSTs that have come in, oldest first.
        violations: the broken rules, one sentence each.
    """

    secret = ""
    """Makes its signatures differ from those of other models."""
    end_status = 500
    """Answers requests when the script is at its end."""

    def __init__(
        self,
        script: Iterable[Script] = (),
        *,
        check_calls: bool = True,
        check_prefix: bool = True,
        rules: Rules | None = None,
        models: Sequence[str] = (),
        each_thread: bool = False,
        watch: Callable[[RecordedRequest, str | None], None] | None = None,
    ) -> None:
        """
        Args:
            check_calls: refuse what the rules refuse.
            check_prefix: turn it off where the history is replaced on purpose (compaction).
            rules: other rules than those of this package.
            models: the ids that `…/models` lists; without any there is no list.
            each_thread: play the whole script for every thread, told apart by their
                `prompt_cache_key` or header `thread-id`, instead of once.
            watch: gets every POST as it comes, and what is wrong with it.
        """
        self._script: list[RenderedReply | Callable[[RecordedRequest], Script]] = []
        self._rules = rules or Rules()
        self._check_calls = check_calls
        self._check_prefix = check_prefix
        self._models = {"data": [{"id": model, "object": "model"} for model in models]}
        self._each_thread = each_thread
        self._watch = watch
        self._lock = threading.Lock()
        self._played: dict[str, int] = {}
        self._last: dict[tuple[str, ...], list[Any]] = {}
        self._pauses: list[Pause] = []
        self.requests: list[RecordedRequest] = []
        self.violations: list[str] = []
        self.add(*script)

    def add(self, *replies: Script) -> None:
        """Lengthen the script, also while the server runs."""
        ready: list[RenderedReply | Callable[[RecordedRequest], Script]] = []
        for reply in replies:
            if callable(reply):
                ready.append(reply)
            else:
                ready.append(self._rendered(reply))
        with self._lock:
            self._script += ready

    def _reply(self, request: RecordedRequest) -> RenderedReply:
        path = request.path.partition("?")[0]
        api = next((api for api in APIS if path.endswith(api.path)), None)
        errors = api or RESPONSES
        if (
            request.method == "GET"
            and path.endswith("/models")
            and self._models["data"]
        ):
            return RenderedReply(Reply(body=json.dumps(self._models).encode()))
        if request.method != "POST":
            upgrade = "upgrade" in request.headers
            status, message = (
                (426, "no WebSockets here") if upgrade else (404, "nothing here")
            )
            return _error(errors, status, message)
        with self._lock:
            self.requests.append(request)
            try:
                problem = self._problem(request, api)
                if problem is not None:
                    self.violations.append(f"request {len(self.requests)}: {problem}")
            except Refusal as refusal:
                problem = str(refusal)
            if self._watch is not None:
                self._watch(request, problem)
            if problem is not None:
                return _error(errors, 400, problem)
            thread = request.thread if self._each_thread else ""
            place = self._played.get(thread, 0)
            if place == len(self._script):
                problem = f"the script is at its end, after {place} answers; nothing was sent to a provider"
                return _error(errors, self.end_status, problem)
            self._played[thread] = place + 1
            script = self._script[place]
        while not isinstance(script, RenderedReply):
            answer = script(request)
            if callable(answer):
                script = answer
            else:
                script = self._rendered(answer)
        with self._lock:
            self._pauses += script.pauses
        if api is None or (api is RESPONSES and _is_streamed(request)):
            return script
        try:
            reply = api.reply(script.reply, request.body, self.secret)
        except ValueError as error:
            with self._lock:
                self.violations.append(
                    f"reply to request {len(self.requests)}: {error}"
                )
            return _error(errors, 500, str(error))
        self._rules.answered(
            b"".join(part for part in reply.events if isinstance(part, bytes))
        )
        return RenderedReply(
            reply if _is_streamed(request) else whole_reply(reply, api.path)
        )

    def _problem(self, request: RecordedRequest, api: Api | None) -> str | None:
        if api is None or not (self._check_calls or self._check_prefix):
            return None
        try:
            body = request.fields
            if self._check_calls:
                self._rules.check(request)
            if not self._check_prefix:
                return None
            prefix = list(self._rules.prefix(request))
        except ValueError as error:
            return str(error)
        # Providers cache for each model and key, and so each may get a history of its own.
        key = str(body.get("prompt_cache_key"))
        place = (request.path, str(body.get("model")), request.thread, key)
        before = self._last.get(place, [])
        self._last[place] = prefix
        return prefix_problem(before, prefix)

    def _rendered(self, script: Sequence[Part] | bytes | Reply) -> RenderedReply:
        if isinstance(script, bytes):
            script = [script]
        return RenderedReply(
            script if isinstance(script, Reply) else Reply(events=script)
        )


def _is_streamed(request: RecordedRequest) -> bool:
    try:
        return bool(request.fields.get("stream"))
    except ValueError:
        return True


def _error(api: Api, status: int, message: str) -> RenderedReply:
    return RenderedReply(Reply(status=status, body=api.error(status, message)))
