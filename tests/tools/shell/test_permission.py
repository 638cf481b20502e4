"""The texts for the model are those of Codex 0.169."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from codex_py.errors import CallRefused
from codex_py.execpolicy.decision import CommandRules, Decision, PrefixRule
from codex_py.execpolicy.place import CommandPlace
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    AskForApproval,
    GranularPolicy,
    SandboxMode,
)
from codex_py.tools.shell.permission import Approval, Ask, CommandCall, Run, decide

CWD = Path("/repo")
UNTRUSTED, ON_FAILURE = ApprovalPolicy.UNTRUSTED, ApprovalPolicy.ON_FAILURE
ON_REQUEST, NEVER = ApprovalPolicy.ON_REQUEST, ApprovalPolicy.NEVER
MODES: tuple[SandboxMode, ...] = ("read-only", "workspace-write", "danger-full-access")
HELD = Run(sandboxed=True)
FREE = Run(sandboxed=False)
RULES = CommandRules(
    (
        PrefixRule((("git",), ("fetch", "pull"))),
        PrefixRule((("git",), ("push",)), Decision.PROMPT),
        PrefixRule(
            (("make",), ("release",)), Decision.PROMPT, "it goes out to everyone"
        ),
        PrefixRule((("curl",),), Decision.FORBIDDEN),
        PrefixRule(
            (("npm",), ("publish",)), Decision.FORBIDDEN, "only the release job may"
        ),
    )
)
ESCALATES = (
    "approval policy is Never; reject command — you cannot ask for escalated permissions"
    " if the approval policy is Never"
)


def call(
    script: str, *, escalated: bool = False, justification: str | None = None
) -> CommandCall:
    return CommandCall(
        ("/bin/bash", "-lc", script),
        CWD,
        escalated=escalated,
        justification=justification,
    )


Verdict: TypeAlias = Run | Ask | tuple[str, bool]
"""If it is refused: the text for the model, and True if nothing would allow it."""


def decided(*arguments: Any) -> Verdict:
    try:
        return decide(*arguments)
    except CallRefused as error:
        return str(error), error.allow is None


def verdict(
    script: str,
    policy: AskForApproval,
    *,
    mode: SandboxMode = "workspace-write",
    escalated: bool = False,
) -> Verdict:
    return decided(call(script, escalated=escalated), policy, mode, RULES, ())


def shown(script: str) -> str:
    return f"/bin/bash -lc {script if script.isalnum() else repr(script)}"


def ask(script: str, reason: str | None, *, sandboxed: bool = True) -> Ask:
    request = ApprovalRequest("command", shown(script), CWD, reason)
    return Ask(request, sandboxed)


def refuse(script: str, why: str, *, by_rule: bool = False) -> tuple[str, bool]:
    return f"`{shown(script)}` rejected: {why}", by_rule


@pytest.mark.parametrize("policy", [ON_FAILURE, ON_REQUEST, NEVER])
@pytest.mark.parametrize(
    "script", ["ls", "touch x", "git status > log", "rm -r x", "git reset --hard"]
)
def test_an_unknown_command_runs_in_the_sandbox(
    script: str, policy: ApprovalPolicy
) -> None:
    assert [verdict(script, policy, mode=mode) for mode in MODES] == [HELD] * 3


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("ls -l && cat x | wc", HELD),
        ("touch x", ask("touch x", None)),
        ("ls > x", ask("ls > x", None)),
        ("cat $(ls)", ask("cat $(ls)", None)),
    ],
)
def test_the_untrusting_are_asked_about_all_but_reading(
    script: str, expected: Verdict
) -> None:
    assert [verdict(script, UNTRUSTED, mode=mode) for mode in MODES] == [expected] * 3


@pytest.mark.parametrize("policy", [UNTRUSTED, ON_FAILURE, ON_REQUEST])
def test_leaving_the_sandbox_is_asked_for_where_there_is_one(
    policy: ApprovalPolicy,
) -> None:
    outside = ask("ls", "outside of the sandbox", sandboxed=False)
    assert [verdict("ls", policy, mode=mode, escalated=True) for mode in MODES] == [
        outside,
        outside,
        FREE,
    ]


def test_leaving_the_sandbox_is_refused_where_nobody_is_asked() -> None:
    refused = [verdict("ls", NEVER, mode=mode, escalated=True) for mode in MODES]
    assert refused == [(ESCALATES, False)] * 3


def test_the_model_says_why() -> None:
    why = call("ls", escalated=True, justification="May I?")
    assert decide(why, ON_REQUEST, "read-only", RULES, ()) == ask(
        "ls", "outside of the sandbox: May I?", sandboxed=False
    )
    unsafe = call("touch x", justification="May I?")
    assert decide(unsafe, UNTRUSTED, "read-only", RULES, ()) == ask("touch x", "May I?")


@pytest.mark.parametrize(
    "script", ["rm -rf x", "sudo rm -f x", "for x in *; do rm -f $x; done"]
)
def test_a_forced_rm_is_asked_about_or_refused_in_every_sandbox(script: str) -> None:
    refused = refuse(
        script, "rm -f style commands are not permitted. Use a safer approach"
    )
    reason = "`rm -f` deletes without asking"
    for mode in MODES:
        assert verdict(script, NEVER, mode=mode) == refused
        for policy in (UNTRUSTED, ON_FAILURE, ON_REQUEST):
            assert verdict(script, policy, mode=mode) == ask(script, reason)
    assert verdict(script, ON_REQUEST, escalated=True) == ask(
        script, f"{reason}; outside of the sandbox", sandboxed=False
    )


@pytest.mark.parametrize("policy", list(ApprovalPolicy))
def test_a_rule_decides_before_all_else(policy: ApprovalPolicy) -> None:
    for mode in MODES:
        for escalated in (False, True):
            assert [
                verdict(script, policy, mode=mode, escalated=escalated)
                for script in ("git fetch", "ls; curl x", "npm publish")
            ] == [
                FREE if script == "git fetch" else refuse(script, why, by_rule=True)
                for script, why in (
                    ("git fetch", ""),
                    ("ls; curl x", "policy forbids commands starting with `curl`"),
                    ("npm publish", "only the release job may"),
                )
            ]


def test_a_rule_that_allows_needs_a_plain_script() -> None:
    assert verdict("git fetch > log", ON_REQUEST) == HELD
    assert verdict("git fetch && touch x", ON_REQUEST) == HELD
    assert verdict("git fetch > log", ON_REQUEST, escalated=True) == ask(
        "git fetch > log", "outside of the sandbox", sandboxed=False
    )


def test_a_rule_may_ask() -> None:
    for mode in MODES:
        assert verdict("git push", ON_REQUEST, mode=mode) == ask(
            "git push", "a rule asks before commands that start with `git push`"
        )
        assert verdict("ls; make release", UNTRUSTED, mode=mode) == ask(
            "ls; make release", "it goes out to everyone"
        )
        assert verdict("git push", NEVER, mode=mode) == refuse(
            "git push",
            "approval required by policy, but AskForApproval is set to Never",
        )


def test_a_granular_policy_refuses_some_questions_unasked() -> None:
    asks = GranularPolicy(sandbox_approval=True, rules=False, mcp_elicitations=True)
    refuses = GranularPolicy(sandbox_approval=False, rules=True, mcp_elicitations=True)
    by_rule = "a rule asks before commands that start with `git push`"
    unasked = "and the approval policy lets nobody be asked for"
    assert verdict("git push", asks) == refuse(
        "git push", f"it needs approval ({by_rule}), {unasked} `rules`"
    )
    assert verdict("git push", refuses) == ask("git push", by_rule)
    assert verdict("rm -f x", asks) == ask("rm -f x", "`rm -f` deletes without asking")
    assert verdict("ls", refuses, escalated=True) == refuse(
        "ls",
        f"it needs approval (outside of the sandbox), {unasked} `sandbox_approval`",
    )
    # Both causes have to be let through.
    for policy in (asks, refuses):
        assert isinstance(verdict("git push", policy, escalated=True), tuple)
        assert verdict("touch x", policy) == HELD


def test_a_yes_for_the_session_covers_the_same_command_in_the_same_place() -> None:
    argv = ("/bin/bash", "-lc", "touch x")

    def after(approved: Approval, policy: ApprovalPolicy = UNTRUSTED) -> Verdict:
        return decided(call("touch x"), policy, "workspace-write", RULES, {approved})

    assert after((argv, CWD, False, False)) == HELD
    assert isinstance(after((argv, CWD, True, False)), Ask)
    assert isinstance(after((argv, CWD / "sub", False, False)), Ask)
    assert isinstance(after(((*argv, "--"), CWD, False, False)), Ask)
    with_terminal = replace(call("touch x"), tty=True)
    yes = {(argv, CWD, False, False)}
    assert isinstance(
        decide(with_terminal, UNTRUSTED, "workspace-write", RULES, yes), Ask
    )


def test_the_question_about_leaving_the_sandbox_names_a_program_of_the_workspace(
    tmp_path: Path,
) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/git"
    fake.touch(mode=0o755)
    place = CommandPlace(
        tmp_path, {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, (tmp_path,)
    )
    for script in ("git status", "cd . && git status > log", "ls $(git status)"):
        wish = replace(
            call(script, escalated=True, justification="status"), cwd=tmp_path
        )
        asked = decide(wish, ON_REQUEST, "workspace-write", CommandRules(), (), place)
        assert isinstance(asked, Ask)
        assert (
            asked.request.reason
            == f"`git` is {fake} by PATH; outside of the sandbox: status"
        )
    inside = replace(call("git status"), cwd=tmp_path)
    asked = decide(inside, UNTRUSTED, "workspace-write", CommandRules(), (), place)
    assert isinstance(asked, Ask)
    assert asked.request.reason is None


def test_the_question_about_a_terminal_outside_of_the_sandbox_says_that_the_model_can_type_into_it() -> (
    None
):
    wish = replace(call("git log", escalated=True), tty=True)
    asked = decide(wish, ON_REQUEST, "workspace-write", RULES, ())
    assert isinstance(asked, Ask)
    expected = "the model can type into it without asking again; outside of the sandbox"
    assert asked.request.reason == expected


def test_a_yes_for_the_session_does_not_cover_a_program_that_the_model_can_change(
    tmp_path: Path,
) -> None:
    (tmp_path / "x").touch(mode=0o755)
    place = CommandPlace(tmp_path, {"PATH": "/bin"}, (tmp_path,))
    for argv, asks in (("./x",), True), (("touch", "x"), False):
        wish = CommandCall(argv, tmp_path)
        found = decide(
            wish, UNTRUSTED, "workspace-write", RULES, {wish.approval}, place
        )
        assert isinstance(found, Ask) is asks


def test_a_yes_for_the_session_covers_a_script_while_its_programs_stay_the_same(
    tmp_path: Path,
) -> None:
    place = CommandPlace(
        tmp_path, {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, (tmp_path,)
    )
    argv = ("/bin/sh", "-c", "cd . && touch x")
    wishes = [
        CommandCall(argv, tmp_path, escalated=escalated) for escalated in (True, False)
    ]

    def asks() -> list[bool]:
        yes = {wish.approval for wish in wishes}
        found = [
            decide(w, UNTRUSTED, "workspace-write", CommandRules(), yes, place)
            for w in wishes
        ]
        return [isinstance(verdict, Ask) for verdict in found]

    assert asks() == [False, False]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/touch").touch(mode=0o755)
    assert asks() == [True, False]


def test_a_script_that_cannot_be_searched_for_an_rm_is_refused() -> None:
    script = "rm -f x\n: $x\n" + "cat <<A " * 15_000
    refused = decided(call(script), NEVER, "workspace-write", CommandRules(), ())
    assert isinstance(refused, tuple)
    assert refused[0].endswith("checked for `rm -f`. Use a shorter script")
    assert isinstance(
        decide(call(script), ON_REQUEST, "workspace-write", CommandRules(), ()), Ask
    )


def test_a_yes_of_before_does_not_change_that_nobody_is_asked_now() -> None:
    dangerous = call("rm -f x")
    assert isinstance(
        decided(dangerous, NEVER, "read-only", RULES, {dangerous.approval}), tuple
    )
    assert (
        decide(dangerous, ON_REQUEST, "read-only", RULES, {dangerous.approval}) == HELD
    )


def test_a_rule_is_offered_for_good() -> None:
    def offered(script: str) -> tuple[str, ...] | None:
        wish = CommandCall(
            ("bash", "-lc", script), CWD, True, None, tuple(script.split()[:2])
        )
        found = decide(wish, ON_REQUEST, "read-only", RULES, ())
        assert isinstance(found, Ask)
        return found.request.prefix

    assert offered("npm test") == ("npm", "test")
    # It would not change that this is asked about.
    assert offered("git push") is None
    assert offered("rm -rf x") is None
