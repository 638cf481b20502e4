"""A model that answers requests from a script, and checks that they keep the rules.

The path of a request selects the API: `…/responses`, `…/chat/completions` (Chat Completions) or
`…/messages` (Anthropic). All APIs play the same script: events of the Responses API are translated,
other events are sent unchanged. A client that does not ask for a stream gets the whole answer as
JSON.

`Rules` check every request: each call has one output, and a request begins with the previous one of
the same thread. A request that violates the rules is answered with status 400.
"""

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, TypeAlias, cast

from codex_py.testing.apis import APIS, RESPONSES, Api
from codex_py.testing.lines import Call, Line, response_of
from codex_py.testing.reply import Part, Pause, RenderedReply, Reply, require_type
from codex_py.testing.request import RecordedRequest
from codex_py.testing.rules import Refusal, Rules, prefix_problem
from codex_py.testing.whole import whole_reply

Script: TypeAlias = (
    Line
    | Sequence[Line]
    | Sequence[Part]
    | bytes
    | Reply
    | Callable[[RecordedRequest], "Script"]
)
"""One reply: a text, a `call`, a list of these, or events in a list. Bytes are a whole stream. A
function gets the request, and may wait."""
_Step: TypeAlias = RenderedReply | Callable[[RecordedRequest], Script]
"""A reply that is encoded already, or a function that makes one."""


class ScriptedModel:
    """Plays one reply of the script for each POST, in order.

    Attributes:
        requests: the POST requests so far, oldest first.
        violations: the violated rules, one sentence each.
    """

    secret = ""
    """A text that makes the model's signatures differ from those of other models."""
    end_status = 500
    """The status for requests after the end of the script."""

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
            check_calls: refuse requests that the rules refuse.
            check_prefix: refuse a request that does not begin with the previous one. Turn this off
                if the history is replaced on purpose (compaction).
            rules: rules that replace those of this package.
            models: the ids that `…/models` lists; without ids, no list is served.
            each_thread: play the whole script for every thread instead of once. The
                `prompt_cache_key` or the header `thread-id` identifies a thread.
            watch: called with every POST as it arrives, and the problem with it.
        """
        self._script: list[_Step] = []
        self._rules = rules or Rules()
        self._check_calls = check_calls
        self._check_prefix = check_prefix
        self._models = [{"id": model, "object": "model"} for model in models]
        self._each_thread = each_thread
        self._watch = watch
        self._lock = threading.Lock()
        self._call_ids = (f"call_{number}" for number in count(1))
        self._played: dict[str, int] = {}
        """The number of replies that were played, by thread."""
        self._last: dict[tuple[str, ...], list[Any]] = {}
        """The input of the last request of each history. See `_problem` for the keys."""
        self._pauses: list[Pause] = []
        """The pauses of the replies that were played."""
        self.requests: list[RecordedRequest] = []
        self.violations: list[str] = []
        self.add(*script)

    def add(self, *replies: Script) -> None:
        """Add replies to the script, also while the server runs."""
        ready: list[_Step] = []
        for reply in replies:
            if callable(reply):
                ready.append(reply)
            else:
                ready.append(self._rendered(reply))
        with self._lock:
            self._script += ready

    def _reply(self, request: RecordedRequest) -> RenderedReply:
        """Answer a request, or refuse it. Safe in any thread."""
        path, _, _ = request.path.partition("?")
        api = None
        for each in APIS:
            if path.endswith(each.path):
                api = each
        errors = api or RESPONSES
        if request.method != "POST":
            return self._reply_without_model(request, path, errors)
        with self._lock:
            self.requests.append(request)
            problem = self._checked(request, api)
            if self._watch is not None:
                self._watch(request, problem)
            if problem is not None:
                return _error(errors, 400, problem)
            thread = request.thread if self._each_thread else ""
            place = self._played.get(thread, 0)
            if place == len(self._script):
                return _error(errors, self.end_status, self._script_end(place))
            self._played[thread] = place + 1
            step = self._script[place]
        # A function may wait, so it is called without the lock.
        while not isinstance(step, RenderedReply):
            answer = step(request)
            if callable(answer):
                step = answer
            else:
                step = self._rendered(answer)
        with self._lock:
            self._pauses += step.pauses
        if api is None or (api is RESPONSES and _is_streamed(request)):
            return step
        return self._translated(step.reply, request, api)

    def _script_end(self, played: int) -> str:
        """Say that the script is at its end, after this number of answers."""
        answers = "1 answer" if played == 1 else f"{played} answers"
        return (
            f"the script of this {type(self).__name__} is at its end, after {answers};"
            " nothing was sent to a provider"
        )

    def _reply_without_model(
        self,
        request: RecordedRequest,
        path: str,
        errors: Api,
    ) -> RenderedReply:
        """Answer a request that is no POST."""
        is_list = request.method == "GET" and path.endswith("/models")
        if is_list and self._models:
            body = json.dumps({"data": self._models})
            return RenderedReply(Reply(body=body.encode()))
        if "upgrade" in request.headers:
            return _error(errors, 426, "no WebSockets here")
        return _error(errors, 404, "nothing here")

    def _translated(
        self,
        reply: Reply,
        request: RecordedRequest,
        api: Api,
    ) -> RenderedReply:
        """A reply in the API of the request, as a stream or as a whole."""
        try:
            reply = api.reply(reply, request.body, self.secret)
        except ValueError as error:
            with self._lock:
                number = len(self.requests)
                self.violations.append(f"reply to request {number}: {error}")
            return _error(api, 500, str(error))
        stream = [part for part in reply.events if isinstance(part, bytes)]
        self._rules.answered(b"".join(stream))
        if not _is_streamed(request):
            reply = whole_reply(reply, api.path)
        return RenderedReply(reply)

    def _checked(self, request: RecordedRequest, api: Api | None) -> str | None:
        """The problem with a request, which becomes a violation if it breaks a rule."""
        try:
            problem = self._problem(request, api)
        except Refusal as refusal:
            return str(refusal)
        if problem is not None:
            self.violations.append(f"request {len(self.requests)}: {problem}")
        return problem

    def _problem(self, request: RecordedRequest, api: Api | None) -> str | None:
        """The rule that a request breaks; None if it keeps all. Raises a `Refusal`."""
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
        # Providers cache for each model and key, so each of these may have its own history.
        key = str(body.get("prompt_cache_key"))
        model = str(body.get("model"))
        history = (request.path, model, request.thread, key)
        before = self._last.get(history, [])
        self._last[history] = prefix
        return prefix_problem(before, prefix)

    def _rendered(
        self, script: Line | Sequence[Line] | Sequence[Part] | bytes | Reply
    ) -> RenderedReply:
        if isinstance(script, Reply):
            return RenderedReply(script)
        # A call is a tuple, and so a sequence too.
        if isinstance(script, bytes | str | Call):
            script = cast("Sequence[Line] | Sequence[Part]", [script])
        rule = "a reply is a text, a call, a list of events, bytes, a `Reply` or a function"
        require_type(script, Sequence, rule)
        if script and isinstance(script[0], str | Call):
            lines = cast("Sequence[Line]", script)
            script = response_of(lines, self._call_ids)
        return RenderedReply(Reply(events=cast("Sequence[Part]", script)))


def _is_streamed(request: RecordedRequest) -> bool:
    try:
        return bool(request.fields.get("stream"))
    except ValueError:
        return True


def _error(
    api: Api,
    status: int,
    message: str,
) -> RenderedReply:
    body = api.error(status, message)
    return RenderedReply(Reply(status=status, body=body))
