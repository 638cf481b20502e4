import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.execpolicy.decision import CommandRules
from codex_py.execpolicy.rules import parse_rules
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    GranularPolicy,
    Review,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.event_items import CommandExecution
from codex_py.protocol.file_rules import FileRules
from codex_py.protocol.tools import ToolOutput
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.patch.apply_patch import ApplyPatch
from codex_py.tools.shell.command import CommandRunner
from codex_py.tools.shell.exec_command import ExecCommand
from codex_py.tools.shell.orchestrator import Orchestrator
from codex_py.tools.shell.permission import CommandCall
from codex_py.tools.shell.shell import ShellCommand
from tests.support.tool_calls import (
    DirectSandbox,
    EchoSandbox,
    ScriptedApprover,
    ToolCalls,
    tool_calls,
)

BASH = "/bin/bash"
ESCALATED = {"sandbox_permissions": "require_escalated"}
NO_RULES = CommandRules()


class RefusingSandbox(DirectSandbox):
    """Makes every command fail like one that the kernel holds back."""

    def __init__(
        self, exit_code: int = 1, says: str = "touch: x: Read-only file system"
    ) -> None:
        super().__init__()
        self._script = f"echo {says!r}; exit {exit_code}"

    def command(
        self, argv: Sequence[str], policy: SandboxPolicy, cwd: Path
    ) -> Sequence[str]:
        return ["sh", "-c", self._script]


class Setting:
    """Commands of one session."""

    def __init__(
        self,
        calls: ToolCalls,
        *,
        policy: ApprovalPolicy | GranularPolicy = ApprovalPolicy.ON_REQUEST,
        answer: ReviewDecision = ReviewDecision.APPROVED,
        feedback: str | None = None,
        sandbox: PlatformSandbox | None = None,
        rules: CommandRules = NO_RULES,
    ) -> None:
        calls.approval_policy = policy
        calls.approver = ScriptedApprover(answer, feedback)
        self.calls = calls
        self.written: list[tuple[str, ...]] = []
        orchestrator = Orchestrator(
            sandbox or DirectSandbox(),
            rules=rules,
            write_rule=lambda words: self.written.append(tuple(words)),
        )
        runner = CommandRunner(calls.sessions, orchestrator, ApplyPatch().apply)
        self.exec_command = ExecCommand(runner, BASH)
        self.shell_command = ShellCommand(runner, BASH)

    async def printed(self, cmd: str, **arguments: Any) -> str:
        output = await self.calls.call(self.exec_command, cmd=cmd, **arguments)
        return output.text.partition("\nOutput:\n")[2]

    async def refusal(self, cmd: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as failure:
            await self.calls.call(self.exec_command, cmd=cmd, **arguments)
        assert failure.value.code == "ApprovalDenied"
        return str(failure.value)

    @property
    def asked(self) -> list[ApprovalRequest]:
        return self.calls.approver.asked


def with_setting(cwd: Path, work: Callable[[Setting], Any], **options: Any) -> Setting:
    async def main() -> Setting:
        async with tool_calls(cwd) as calls:
            setting = Setting(calls, **options)
            await work(setting)
            return setting

    return asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        ReviewDecision.APPROVED,
        ReviewDecision.APPROVED_FOR_SESSION,
        # No rule can be made of this.
        ReviewDecision.APPROVED_WITH_RULE,
    ],
)
def test_a_command_leaves_the_sandbox_with_a_yes(
    answer: ReviewDecision, tmp_path: Path
) -> None:
    async def work(setting: Setting) -> None:
        assert (
            await setting.printed("echo free", **ESCALATED, justification="May I?")
            == "free\n"
        )

    setting = with_setting(tmp_path, work, sandbox=EchoSandbox(), answer=answer)
    assert setting.asked == [
        ApprovalRequest(
            "command",
            "/bin/bash -lc 'echo free'",
            tmp_path,
            "outside of the sandbox: May I?",
        )
    ]
    assert [setting.asked[0].item_id] == [item.id for item in setting.calls.started()]
    assert setting.written == []


def test_it_is_asked_again_where_another_program_has_come_while_it_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command in the background can put it there while the user reads the question."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    class SlowApprover(ScriptedApprover):
        async def review(self, request: ApprovalRequest) -> Review:
            (folder / "id").touch(mode=0o755)
            return await super().review(request)

    async def work(setting: Setting) -> None:
        setting.calls.approver = SlowApprover(ReviewDecision.APPROVED)
        await setting.printed("id", **ESCALATED)

    asked = [request.reason for request in with_setting(tmp_path, work).asked]
    leaves = "outside of the sandbox"
    assert asked == [leaves, f"`id` is {folder}/id by PATH; {leaves}"]


@pytest.mark.parametrize("answer", [ReviewDecision.DENIED, ReviewDecision.ABORT])
@pytest.mark.parametrize(
    ("feedback", "told"), [(None, ""), ("use `touch` instead", ": use `touch` instead")]
)
def test_a_no_is_told_and_shown(
    answer: ReviewDecision, feedback: str | None, told: str, tmp_path: Path
) -> None:
    text = f"exec command rejected by user{told}"

    async def work(setting: Setting) -> None:
        assert await setting.refusal("echo > x", **ESCALATED) == text

    setting = with_setting(tmp_path, work, answer=answer, feedback=feedback)
    begun = CommandExecution(
        id="item_0", command="/bin/bash -lc 'echo > x'", cwd=str(tmp_path)
    )
    declined = CommandExecution(
        id="item_0",
        command=begun.command,
        aggregated_output=text,
        status="declined",
        cwd=begun.cwd,
    )
    assert (setting.calls.started(), setting.calls.completed()) == ([begun], [declined])
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("policy", "arguments", "text"),
    [
        (
            ApprovalPolicy.NEVER,
            {"cmd": "true", **ESCALATED},
            "approval policy is Never; reject command — you cannot ask for escalated permissions"
            " if the approval policy is Never",
        ),
        (
            ApprovalPolicy.NEVER,
            {"cmd": "rm -f x"},
            "`/bin/bash -lc 'rm -f x'` rejected: rm -f style commands are not permitted."
            " Use a safer approach",
        ),
        (
            GranularPolicy(sandbox_approval=False, rules=True, mcp_elicitations=True),
            {"cmd": "rm -f x"},
            "`/bin/bash -lc 'rm -f x'` rejected: it needs approval (`rm -f` deletes without"
            " asking), and the approval policy lets nobody be asked for `sandbox_approval`",
        ),
    ],
)
def test_a_question_that_may_not_be_asked_is_refused_and_shown(
    policy: ApprovalPolicy, arguments: dict[str, Any], text: str, tmp_path: Path
) -> None:
    async def work(setting: Setting) -> None:
        assert await setting.refusal(**arguments) == text

    setting = with_setting(tmp_path, work, policy=policy)
    assert setting.asked == []
    assert [(i.status, i.aggregated_output) for i in setting.calls.completed()] == [
        ("declined", text)
    ]


def test_a_yes_for_the_session_is_remembered_by_all_command_tools(
    tmp_path: Path,
) -> None:
    async def work(setting: Setting) -> None:
        assert await setting.printed("echo hi", **ESCALATED) == "hi\n"
        setting.calls.approver.decision = ReviewDecision.DENIED
        assert await setting.printed("echo hi", **ESCALATED) == "hi\n"
        output = await setting.calls.call(
            setting.shell_command, command="echo hi", **ESCALATED
        )
        assert output.text.endswith("Output:\nhi\n")
        # Another place and other words are other questions, and so is the sandbox.
        (tmp_path / "sub").mkdir()
        await setting.refusal("echo hi", workdir="sub", **ESCALATED)
        await setting.refusal("echo ho", **ESCALATED)
        setting.calls.approval_policy = ApprovalPolicy.UNTRUSTED
        await setting.refusal("touch x")
        assert len(setting.asked) == 4

    with_setting(tmp_path, work, answer=ReviewDecision.APPROVED_FOR_SESSION)


def test_calls_that_ask_the_same_at_once_ask_once(tmp_path: Path) -> None:
    async def work(setting: Setting) -> None:
        calls = [setting.printed("echo hi", **ESCALATED) for _ in range(3)]
        assert await asyncio.gather(*calls) == ["hi\n"] * 3
        assert len(setting.asked) == 1

    with_setting(tmp_path, work, answer=ReviewDecision.APPROVED_FOR_SESSION)


def test_a_rule_is_made_and_holds_at_once(tmp_path: Path) -> None:
    async def work(setting: Setting) -> None:
        wish = {**ESCALATED, "prefix_rule": ["echo", "hi"]}
        assert await setting.printed("echo hi there", **wish) == "hi there\n"
        assert setting.asked[0].prefix == ("echo", "hi")
        setting.calls.approver.decision = ReviewDecision.DENIED
        assert await setting.printed("echo hi you; echo hi me") == "hi you\nhi me\n"
        # What a rule does not cover is in the sandbox as before.
        assert (await setting.printed("echo hi > x")).startswith("read-only ")
        assert len(setting.asked) == 1

    setting = with_setting(
        tmp_path, work, sandbox=EchoSandbox(), answer=ReviewDecision.APPROVED_WITH_RULE
    )
    assert setting.written == [("echo", "hi")]


@pytest.mark.parametrize("wish", ["echo", [], [1, {}], {"a": "b"}, None, ["bash"]])
def test_a_wish_that_cannot_be_granted_is_passed_over(
    wish: Any, tmp_path: Path
) -> None:
    async def work(setting: Setting) -> None:
        assert await setting.printed("echo hi", **ESCALATED, prefix_rule=wish) == "hi\n"
        assert setting.asked[0].prefix is None

    with_setting(tmp_path, work)


def test_rules_are_asked_before_the_user(tmp_path: Path) -> None:
    rules = parse_rules(
        'prefix_rule(["echo", "free"])\n'
        'prefix_rule(["echo", "bad"], decision="forbidden", justification="say something else")\n'
        'prefix_rule(["echo", "maybe"], decision="prompt")\n',
        "test",
    )

    async def work(setting: Setting) -> None:
        assert await setting.printed("echo free") == "free\n"
        assert await setting.refusal("echo free; echo bad") == (
            "`/bin/bash -lc 'echo free; echo bad'` rejected: say something else"
        )
        assert setting.asked == []
        assert (await setting.printed("echo maybe")).startswith("read-only ")
        assert [request.reason for request in setting.asked] == [
            "a rule asks before commands that start with `echo maybe`"
        ]

    with_setting(tmp_path, work, sandbox=EchoSandbox(), rules=rules)


@pytest.mark.parametrize("tool", ["exec_command", "shell_command"])
def test_a_command_that_the_sandbox_made_fail_is_run_again_with_a_yes(
    tool: str, tmp_path: Path
) -> None:
    async def work(setting: Setting) -> None:
        argument = {"cmd" if tool == "exec_command" else "command": "echo free"}
        output: ToolOutput = await setting.calls.call(
            getattr(setting, tool), **argument
        )
        assert output.text.endswith("Output:\nfree\n")
        assert output.success

    setting = with_setting(
        tmp_path, work, policy=ApprovalPolicy.ON_FAILURE, sandbox=RefusingSandbox()
    )
    assert setting.asked == [
        ApprovalRequest(
            "command",
            "/bin/bash -lc 'echo free'",
            tmp_path,
            "it failed in the sandbox; run it again outside of it?",
        )
    ]
    assert [(item.id, item.status) for item in setting.calls.completed()] == [
        ("item_0", "failed"),
        ("item_1", "completed"),
    ]


def test_without_the_yes_its_failure_is_told(tmp_path: Path) -> None:
    text = (
        "the user did not let it run again outside of the sandbox: no\n"
        "In it, it exited with code 1 and printed:\ntouch: x: Read-only file system\n"
    )

    async def work(setting: Setting) -> None:
        assert await setting.refusal("echo free") == text

    setting = with_setting(
        tmp_path,
        work,
        policy=ApprovalPolicy.ON_FAILURE,
        sandbox=RefusingSandbox(),
        answer=ReviewDecision.DENIED,
        feedback="no",
    )
    assert [item.status for item in setting.calls.completed()] == ["failed", "declined"]


def test_a_yes_for_the_session_saves_the_second_question_too(tmp_path: Path) -> None:
    async def work(setting: Setting) -> None:
        for _ in range(2):
            assert await setting.printed("echo free") == "free\n"
        assert len(setting.asked) == 1

    with_setting(
        tmp_path,
        work,
        policy=ApprovalPolicy.ON_FAILURE,
        sandbox=RefusingSandbox(),
        answer=ReviewDecision.APPROVED_FOR_SESSION,
    )


@pytest.mark.parametrize(
    ("sandbox", "options"),
    [
        (RefusingSandbox(0), {}),
        (RefusingSandbox(1, "assertion failed"), {}),
        # Ended by someone.
        (RefusingSandbox(137), {}),
        (RefusingSandbox(), {"policy": ApprovalPolicy.ON_REQUEST}),
        (RefusingSandbox(), {"policy": ApprovalPolicy.NEVER}),
    ],
)
def test_other_failures_are_results(
    sandbox: PlatformSandbox, options: dict[str, Any], tmp_path: Path
) -> None:
    async def work(setting: Setting) -> None:
        assert await setting.printed("echo free") != "free\n"
        assert setting.asked == []

    settings = {"policy": ApprovalPolicy.ON_FAILURE, **options}
    with_setting(tmp_path, work, sandbox=sandbox, **settings)


@pytest.mark.skipif(sys.platform != "linux", reason="the number of the signal")
def test_a_forbidden_system_call_counts_as_held_up(tmp_path: Path) -> None:
    async def work(setting: Setting) -> None:
        assert await setting.printed("echo free") == "free\n"

    with_setting(
        tmp_path,
        work,
        policy=ApprovalPolicy.ON_FAILURE,
        sandbox=RefusingSandbox(159, ""),
    )


def test_a_command_that_goes_on_is_not_run_again(tmp_path: Path) -> None:
    async def work(setting: Setting) -> None:
        script = "echo Permission denied; exec sleep 1000"
        output = await setting.calls.call(
            setting.exec_command, cmd=script, yield_time_ms=1
        )
        assert "Process running with session ID" in output.text
        assert setting.asked == []

    with_setting(tmp_path, work, policy=ApprovalPolicy.ON_FAILURE)


class Outside:
    """A place outside of the sandbox that starts commands."""

    def __call__(self, argv: Sequence[str], **_: Any) -> Any:
        raise AssertionError(argv)


WRITES = ("bash", "-c", "make all")
WORKSPACE = SandboxPolicy("workspace-write")
FINAL = SandboxPolicy("workspace-write", is_final=True)
FREE = SandboxPolicy("danger-full-access", network_access=True)
NO_QUESTIONS = GranularPolicy(sandbox_approval=False, rules=True, mcp_elicitations=True)
DENYING = replace(FREE, files=FileRules(((Path("/secret"), "deny"),)))
LISTED = replace(FREE, domains=DomainRules(("a.example",), is_required=True))


@pytest.mark.parametrize(
    ("leads", "sandbox", "policy", "call", "outcome"),
    [
        (False, FREE, ApprovalPolicy.NEVER, {}, "outside"),
        (False, WORKSPACE, ApprovalPolicy.ON_REQUEST, {}, "here"),
        (
            False,
            WORKSPACE,
            ApprovalPolicy.ON_REQUEST,
            {"escalated": True},
            "asked, outside",
        ),
        (True, WORKSPACE, ApprovalPolicy.ON_REQUEST, {}, "asked, outside"),
        (True, WORKSPACE, ApprovalPolicy.UNTRUSTED, {}, "asked, outside"),
        (True, WORKSPACE, ApprovalPolicy.NEVER, {}, "here"),
        (True, WORKSPACE, ApprovalPolicy.ON_FAILURE, {}, "here"),
        (True, WORKSPACE, NO_QUESTIONS, {}, "here"),
        (True, FINAL, ApprovalPolicy.ON_REQUEST, {}, "here"),
        (True, FINAL, ApprovalPolicy.ON_REQUEST, {"escalated": True}, "here"),
        (True, WORKSPACE, ApprovalPolicy.ON_REQUEST, {"tty": True}, "here"),
        (True, WORKSPACE, ApprovalPolicy.ON_REQUEST, {"argv": ("ls",)}, "here"),
        (True, FREE, ApprovalPolicy.ON_REQUEST, {}, "outside"),
        (True, FREE, ApprovalPolicy.ON_REQUEST, {"tty": True}, "here"),
        (True, DENYING, ApprovalPolicy.ON_REQUEST, {}, "here"),
        (True, LISTED, ApprovalPolicy.ON_REQUEST, {}, "here"),
        (
            True,
            replace(WORKSPACE, files=DENYING.files),
            ApprovalPolicy.ON_REQUEST,
            {},
            "here",
        ),
    ],
)
def test_only_what_no_limit_holds_for_is_started_outside(
    tmp_path: Path,
    leads: bool,
    sandbox: SandboxPolicy,
    policy: ApprovalPolicy | GranularPolicy,
    call: dict[str, Any],
    outcome: str,
) -> None:
    async def main() -> str:
        async with tool_calls(tmp_path) as calls:
            calls.approval_policy = policy
            calls.sandbox_policy = sandbox
            calls.approver = ScriptedApprover(ReviewDecision.APPROVED)
            orchestrator = Orchestrator(
                EchoSandbox(), outside=Outside(), leads_outside=leads
            )
            command = replace(CommandCall(WRITES, tmp_path), **call)
            verdict = await orchestrator.approve(command, calls.context())
            launch = orchestrator.launch(
                command,
                calls.context(),
                sandboxed=verdict.sandboxed,
                tty=command.tty,
            )
            words = ["here" if launch.spawn is None else "outside"]
            if calls.approver.asked:
                words.insert(0, "asked")
            if launch.spawn is not None:
                assert launch.argv == list(command.argv)
            return ", ".join(words)

    assert asyncio.run(main()) == outcome
