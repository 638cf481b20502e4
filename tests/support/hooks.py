"""Sessions with hooks, against a scripted server."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codex_py.app.options import SessionOptions
from codex_py.app.session import open_session
from codex_py.config.config import load_config
from codex_py.core.session import Session
from codex_py.core.session_turn import TurnResult
from codex_py.protocol.approval import Approver
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, HookProgress, ItemCompleted
from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

Handler = str | Mapping[str, Any]
_USUAL = ("You are a coding agent", "<permissions", "<environment")
DONE = [*ev_message("done"), ev_completed()]
Work = Callable[[Session, "Hooked"], Awaitable[Any]]


@dataclass
class Hooked:
    """What came of a session."""

    place: Workplace
    results: list[TurnResult] = field(default_factory=list[TurnResult])
    events: list[Event] = field(default_factory=list[Event])
    requests: list[list[dict[str, Any]]] = field(
        default_factory=list[list[dict[str, Any]]]
    )

    @property
    def warnings(self) -> list[str]:
        """Without the one about the bypassed review."""
        texts = [
            event.item.message
            for event in self.events
            if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem)
        ]
        return [text for text in texts if "bypass" not in text]

    @property
    def progress(self) -> list[tuple[str, str]]:
        return [(e.event, e.status) for e in self.events if isinstance(e, HookProgress)]

    def said(self, request: int = -1) -> list[tuple[str, str]]:
        """Role and text of the messages and outputs of a request, without those that every session begins with."""
        found: list[tuple[str, str]] = []
        for item in self.requests[request]:
            if item["type"] == "message":
                found.append((item["role"], item["content"][0]["text"]))
            elif item["type"].endswith("_output"):
                output = item["output"]
                found.append(
                    (
                        "output",
                        output if isinstance(output, str) else output[-1]["text"],
                    )
                )
        return [(role, text) for role, text in found if not text.startswith(_USUAL)]

    def given(self, name: str) -> list[dict[str, Any]]:
        """What `note(name)` was given each time."""
        path = self.place.home / f"{name}.log"
        if not path.exists():
            return []
        return [
            json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
        ]


def note(name: str) -> str:
    """A hook that notes what it is given."""
    return f"cat >> $CODEX_HOME/{name}.log; echo >> $CODEX_HOME/{name}.log"


def says(answer: Mapping[str, Any]) -> str:
    """A hook that prints this."""
    return f"cat <<'END'\n{json.dumps(answer)}\nEND"


def specific(event: str, **fields: Any) -> str:
    return says({"hookSpecificOutput": {"hookEventName": event, **fields}})


def command(text: str, call_id: str = "c1", **arguments: Any) -> list[Any]:
    """A response that runs a command."""
    return [
        *ev_function_call(call_id, "exec_command", {"cmd": text, **arguments}),
        ev_completed(),
    ]


def asks(text: str, call_id: str = "c1") -> list[Any]:
    """A response with a call that needs an approval."""
    wanted = {
        "cmd": text,
        "sandbox_permissions": "require_escalated",
        "justification": "May I?",
    }
    return [*ev_function_call(call_id, "exec_command", wanted), ev_completed()]


def group(handler: Handler, matcher: str | None = None) -> dict[str, Any]:
    parts = (
        {"type": "command", "command": handler}
        if isinstance(handler, str)
        else dict(handler)
    )
    matched = {} if matcher is None else {"matcher": matcher}
    return {**matched, "hooks": [parts]}


def configure(place: Workplace, hooks: Mapping[str, Sequence[Any]]) -> None:
    """Write `hooks.json`: for each event handlers, or groups."""
    events = {
        event: [
            each if "hooks" in each and not isinstance(each, str) else group(each)
            for each in groups
        ]
        for event, groups in hooks.items()
    }
    (place.home / "hooks.json").write_text(
        json.dumps({"hooks": events}), encoding="utf-8"
    )


def run(
    place: Workplace,
    hooks: Mapping[str, Sequence[Any]],
    replies: Sequence[Any],
    *,
    work: Work | None = None,
    options: SessionOptions | None = None,
    approver: Approver | None = None,
    flags: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    config: str = "",
    check_prefix: bool = True,
    tools: Sequence[Callable[..., Any]] = (),
    sink: Callable[[Event], object] = lambda _: None,
) -> Hooked:
    """Run a turn, or other work, in a session with these hooks, all of them trusted."""
    hooked = Hooked(place)
    configure(place, hooks)

    def seen(event: Event) -> None:
        hooked.events.append(event)
        sink(event)

    async def one_turn(session: Session, hooked: Hooked) -> None:
        hooked.results.append(await asyncio.wait_for(session.run_turn("go"), 30))

    async def main() -> None:
        variables = environment(place.home, env)
        loaded = load_config(
            cwd=place.cwd,
            environment=variables,
            flags={
                "sandbox_mode": "danger-full-access",
                "approval_policy": "never",
                **(flags or {}),
            },
        )
        async with open_session(
            loaded,
            options or SessionOptions(bypass_hook_trust=True),
            seen,
            environment=variables,
            approver=approver,
            tools=tools,
        ) as session:
            await (work or one_turn)(session, hooked)

    with ScriptedServer(replies, check_prefix=check_prefix) as server:
        place.configure(server)
        path = place.home / "config.toml"
        path.write_text(path.read_text(encoding="utf-8") + config, encoding="utf-8")
        asyncio.run(main())
        hooked.requests = [request.input for request in server.requests]
    return hooked
