"""What a role lets an agent call, whatever name or form the call has.

Tests `app/features/agents/role.py`.
"""

from typing import Any

import pytest

from codex_py import (
    ApprovalRequest,
    Extension,
    ModelStream,
    Prompt,
    Review,
    ReviewDecision,
    Thread,
)
from codex_py.app.features.agents.role import RoleLimits
from codex_py.config.role_files import Role
from codex_py.protocol.tools import COMMAND_TOOLS
from codex_py.testing import ev_completed, ev_custom_tool_call, ev_local_shell_call
from tests.app.test_extensions import ECHO, calls, echoes, run, says
from tests.sandbox.local_backends import BACKENDS
from tests.support.program import Workplace

PATCH = "*** Begin Patch\n*** Add File: made.txt\n+x\n*** End Patch\n"
needs_sandbox = pytest.mark.skipif(not BACKENDS, reason="needs a way to hold commands")
READER = Role("reader", "Reads.", tools=COMMAND_TOOLS, reads_only=True)
WRITER = Role("writer", "Writes.", tools=frozenset(("apply_patch",)))


def local_shell(command: list[str]) -> list[dict[str, Any]]:
    return [*ev_local_shell_call("c1", command), ev_completed()]


def custom(name: str, text: str) -> list[dict[str, Any]]:
    return [*ev_custom_tool_call("c1", name, text), ev_completed()]


def output(place: Workplace, role: Role, call: Any, **more: Any) -> str:
    talk = run(place, [call, says("done")], RoleLimits(role), echoes, **more)
    (found,) = [item for item in talk.requests[-1] if item["type"].endswith("_output")]
    return str(found["output"])


class Agreeing:
    asked = 0

    async def review(self, request: ApprovalRequest) -> Review:
        self.asked += 1
        return Review(ReviewDecision.APPROVED)


@pytest.mark.parametrize(
    "call",
    [
        calls("exec_command", cmd="touch made.txt"),
        calls("functions.exec_command", cmd="touch made.txt"),
        calls("write_stdin", session_id=1, chars="x"),
        calls("shell", command=["touch", "made.txt"]),
        calls("container.exec", command=["touch", "made.txt"]),
        calls("shell_command", command="touch made.txt"),
        local_shell(["touch", "made.txt"]),
        calls("list_mcp_resources"),
        calls("view_image", path="a.png"),
        calls("update_plan", plan=[]),
        calls("echo", text="hello"),
    ],
)
def test_a_tool_that_the_role_lacks_is_refused(place: Workplace, call: Any) -> None:
    text = output(place, WRITER, call)
    assert (
        "the role 'writer' of this agent does not allow" in text
        or "unsupported call" in text
    )
    assert not (place.cwd / "made.txt").exists()


@pytest.mark.parametrize(
    "call",
    [
        calls("apply_patch", input=PATCH),
        calls("applypatch", input=PATCH),
        custom("apply_patch", PATCH),
        custom("functions.apply_patch", PATCH),
    ],
)
def test_a_patch_is_refused_to_a_role_that_reads(place: Workplace, call: Any) -> None:
    assert "the role 'reader' of this agent does not allow `apply_patch`" in output(
        place, READER, call
    )
    assert not (place.cwd / "made.txt").exists()


def test_a_patch_inside_a_command_is_refused_to_a_role_that_reads(
    place: Workplace,
) -> None:
    approver = Agreeing()
    for call in (
        calls("exec_command", cmd=f"apply_patch <<'E'\n{PATCH}E\n"),
        calls("shell", command=["apply_patch", PATCH]),
        local_shell(["apply_patch", PATCH]),
    ):
        text = output(place, READER, call, approver=approver)
        assert "writing is blocked by read-only sandbox" in text
    assert not (place.cwd / "made.txt").exists()
    assert approver.asked == 0


@needs_sandbox
@pytest.mark.parametrize(
    "arguments",
    [
        {"cmd": "touch made.txt"},
        {"cmd": "touch made.txt", "sandbox_permissions": "require_escalated"},
        {"cmd": "touch allowed.txt"},
    ],
)
def test_commands_of_a_role_that_reads_write_nothing(
    place: Workplace, arguments: dict[str, Any]
) -> None:
    (place.home / "rules").mkdir()
    (place.home / "rules" / "default.rules").write_text(
        'prefix_rule(pattern = ["touch", "allowed.txt"], decision = "allow")\n',
        encoding="utf-8",
    )
    approver = Agreeing()
    output(
        place,
        READER,
        calls("exec_command", **arguments),
        approver=approver,
        flags={"approval_policy": "on-request"},
    )
    assert not [*place.cwd.iterdir()]
    assert approver.asked == 0


@needs_sandbox
def test_a_role_that_reads_can_read(place: Workplace) -> None:
    (place.cwd / "a.txt").write_text("the text\n", encoding="utf-8")
    assert "the text" in output(place, READER, calls("exec_command", cmd="cat a.txt"))


def test_a_role_may_have_a_tool_of_an_extension(place: Workplace) -> None:
    role = Role("echoing", "Echoes.", tools=frozenset((ECHO.name,)))
    assert output(place, role, calls("echo", text="hello")) == "c1: hello"


def test_a_role_without_a_list_has_all_tools(place: Workplace) -> None:
    assert (
        output(place, Role("all", "All."), calls("echo", text="hello")) == "c1: hello"
    )


def test_requests_offer_the_tools_of_the_role_alone(place: Workplace) -> None:
    offers: list[list[str]] = []

    def watched(_: Thread) -> Extension:
        def wrap(inner: ModelStream) -> ModelStream:
            def stream(prompt: Prompt) -> Any:
                offers.append(sorted(spec.name for spec in prompt.tools))
                return inner(prompt)

            return stream

        return Extension(wrap_model=wrap)

    role = Role("r", "R.", tools=frozenset(("echo", "apply_patch", "web_search")))
    run(place, [says("done")], echoes, RoleLimits(role), watched)
    assert offers == [["apply_patch", "echo", "web_search"]]
