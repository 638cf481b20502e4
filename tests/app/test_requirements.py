"""What an administrator requires holds in a session, whatever it is told while it runs.

Tests `app/permissions.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py import (
    Agent,
    ApprovalRequest,
    Event,
    Review,
    ReviewDecision,
    Session,
    SessionOptions,
    load_config,
    open_session,
)
from codex_py.app.permissions import PERMISSIONS
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import ItemCompleted
from codex_py.testing import (
    FakeModel,
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
)
from tests.support.agents import AgentServer, calls, says, waits
from tests.support.program import Workplace, environment

NO_FULL = 'allowed_sandbox_modes = ["read-only", "workspace-write"]\n'


class Yes:
    async def review(self, request: ApprovalRequest) -> Review:
        return Review(ReviewDecision.APPROVED_FOR_SESSION)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that no sandboxed command can make."""
    return tmp_path / "outside"


def command(path: Path, **more: Any) -> list[Any]:
    given = {"cmd": f"touch {path}", "justification": "please", **more}
    return [*ev_function_call("c1", "exec_command", given), ev_completed()]


def talk(
    place: Workplace,
    server: AgentServer,
    work: Callable[[Session], Awaitable[Any]],
    text: str = NO_FULL,
    **flags: Any,
) -> list[str]:
    """Work in a session under these requirements. Returns its warnings."""
    warnings: list[str] = []
    system = place.home.parent / "etc"
    system.mkdir(exist_ok=True)
    (system / "requirements.toml").write_text(text, encoding="utf-8")

    def sink(event: Event) -> None:
        if isinstance(event, ItemCompleted) and isinstance(event.item, ErrorItem):
            warnings.append(event.item.message)

    async def main() -> None:
        env = environment(place.home)
        config = load_config(cwd=place.cwd, environment=env, system=system, flags=flags)
        opening = open_session(
            config, SessionOptions(), sink, environment=env, approver=Yes()
        )
        async with asyncio.timeout(60), opening as session:
            await work(session)

    with server:
        place.configure(server)
        asyncio.run(main())
    return warnings


@pytest.mark.parametrize("way", ["approval", "rule", "menu", "choices", "patch"])
def test_nothing_leaves_the_sandbox(place: Workplace, outside: Path, way: str) -> None:
    # The temporary folders are open to commands, and so is the place of this test.
    closed = {"exclude_slash_tmp": True, "exclude_tmpdir_env_var": True}
    first = command(outside, sandbox_permissions="require_escalated")
    if way in {"menu", "choices"}:
        first = command(outside)
    if way == "patch":
        patch = f"*** Begin Patch\n*** Add File: {outside}\n+x\n*** End Patch\n"
        first = [*ev_custom_tool_call("c1", "apply_patch", patch), ev_completed()]
    if way == "rule":
        rules = place.home / "rules"
        rules.mkdir()
        (rules / "a.rules").write_text(
            'prefix_rule(pattern=["touch"])\n', encoding="utf-8"
        )

    async def work(session: Session) -> None:
        choices = session.settings.choices
        if way == "menu":
            full = next(each for each in PERMISSIONS if each.id == "full-access")
            system = place.home.parent / "etc"
            env = environment(place.home)
            config = load_config(cwd=place.cwd, environment=env, system=system)
            session.change(full.given_to(choices, config, ()))
        if way == "choices":
            policy = replace(
                choices.sandbox_policy, mode="danger-full-access", is_final=False
            )
            session.change(replace(choices, sandbox_policy=policy))
        await session.run_turn("go")

    server = AgentServer([first, says("done")])
    warnings = talk(
        place,
        server,
        work,
        sandbox_mode="workspace-write",
        sandbox_workspace_write=closed,
    )
    assert len(server.of_parent()) == 2
    assert not outside.exists()
    told = [text for text in warnings if "does not allow" in text]
    assert len(told) == (way in {"choices", "menu"})


def test_a_subagent_has_no_more(place: Workplace, outside: Path) -> None:
    server = AgentServer(
        [calls("spawn_agent", message="make it"), waits(), says("all done")],
        [command(outside, sandbox_permissions="require_escalated"), says("tried")],
    )
    talk(
        place, server, lambda session: session.run_turn("go"), sandbox_mode="read-only"
    )
    assert len(server.of_children()) == 2
    assert not outside.exists()


def test_an_agent_of_the_library_has_no_more(
    place: Workplace, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = place.home.parent / "etc"
    system.mkdir()
    (system / "requirements.toml").write_text(
        'allowed_sandbox_modes = ["read-only"]', encoding="utf-8"
    )
    defaults = load_config.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "system", system)
    script = command(outside, sandbox_permissions="require_escalated")
    model = FakeModel(script, "done")
    agent = Agent(
        model,
        cwd=place.cwd,
        home=place.home,
        sandbox="workspace-write",
        approve=lambda _: True,
    )
    assert agent.run_sync("go").text == "done"
    assert not outside.exists()
