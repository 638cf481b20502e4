import asyncio
import os
import re
import stat
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Literal

import pytest

import codex_py
from codex_py.errors import ToolError
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.plan import plan_undo
from codex_py.protocol.approval import (
    ApprovalPolicy,
    ApprovalRequest,
    AskForApproval,
    GranularPolicy,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.dispatch import ToolContext
from codex_py.protocol.event_items import Change, FileChange
from codex_py.protocol.events import Event, FilesPatched, ItemCompleted, ItemStarted
from codex_py.protocol.patched_file import PatchedFile
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.patch.apply_patch import ApplyPatch
from tests.support.patching import killed_at
from tests.support.tool_calls import ScriptedApprover
from tests.support.tool_context import tool_context


def ignored(_event: Event) -> None:
    """An event sink for tests that look at something else."""


def workspace(root: Path) -> SandboxPolicy:
    return SandboxPolicy("workspace-write", (root,), exclude_slash_tmp=True)


def enveloped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def run(tool: ApplyPatch, patch: str, context: ToolContext) -> ToolOutput:
    params = tool.params.model_validate({"input": patch})
    return asyncio.run(tool.run(params, context))


def test_a_patch_is_applied_and_announced(tmp_path: Path):
    (tmp_path / "old").write_text("1\n", encoding="utf-8")
    (tmp_path / "old").chmod(0o640)
    events: list[Event] = []
    patch = enveloped(
        *(
            "*** Update File: old",
            "*** Move to: new",
            "-1",
            "+2",
            "*** Add File: added",
            "+x",
        )
    )
    output = run(ApplyPatch(), patch, tool_context(tmp_path, events.append))
    assert re.fullmatch(
        r"Exit code: 0\nWall time: \d+(\.\d)? seconds\nOutput:\n"
        r"Success\. Updated the following files:\nA added\nM new\n",
        output.text,
    )
    assert output.success
    assert output.error_code is None
    item = FileChange(
        id="item_0",
        changes=[
            Change(path=str(tmp_path / "added"), kind="add"),
            Change(path=str(tmp_path / "old"), kind="update"),
        ],
        diff=(
            "diff --git a/old b/new\nrename from old\nrename to new\n--- a/old\n+++ b/new\n"
            "@@ -1 +1 @@\n-1\n+2\n"
            "diff --git a/added b/added\nnew file mode 100644\n--- /dev/null\n+++ b/added\n@@ -0,0 +1 @@\n+x\n"
        ),
    )
    done = FileChange(
        id=item.id, changes=item.changes, status="completed", diff=item.diff
    )
    mode = (tmp_path / "new").stat().st_mode
    patched = FilesPatched(
        [
            PatchedFile(
                *(tmp_path / "old", "update", tmp_path / "new", b"1\n", b"2\n", None),
                *(mode, mode),
            ),
            PatchedFile(tmp_path / "added", "add", None, None, b"x\n"),
        ]
    )
    assert events == [ItemStarted(item), patched, ItemCompleted(done)]
    assert isinstance(events[1], FilesPatched)
    modes = [(file.old_mode, file.new_mode) for file in events[1].files]
    assert modes == [(stat.S_IFREG | 0o640, stat.S_IFREG | 0o640), (None, None)]
    assert (tmp_path / "new").read_text(encoding="utf-8") == "2\n"


def test_relative_paths_start_at_the_directory_given(tmp_path: Path):
    apply = ApplyPatch().apply(
        enveloped("*** Add File: x"), tmp_path / "made", tool_context(tmp_path, ignored)
    )
    assert asyncio.run(apply).success
    assert (tmp_path / "made" / "x").read_bytes() == b""


def test_notes_follow_the_summary(tmp_path: Path):
    (tmp_path / "a").write_text("x\nx\n", encoding="utf-8")
    output = run(
        ApplyPatch(),
        enveloped("*** Update File: a", "-x"),
        tool_context(tmp_path, ignored),
    )
    assert output.text.endswith(
        f"M a\nNote: {tmp_path}/a: hunk 1 was applied at line 1 (it also fits at 2).\n"
    )


@pytest.mark.parametrize("name", ["input", "patch", "patchText"])
def test_the_argument_has_several_names(name: str):
    assert ApplyPatch.params.model_validate({name: "x"}).input == "x"


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        (enveloped(), "patch rejected: empty patch"),
        (
            "x",
            "apply_patch verification failed: invalid patch: The first line of the patch must be "
            "'*** Begin Patch'",
        ),
        (
            enveloped("*** Update File: a"),
            "apply_patch verification failed: invalid hunk at line 2, Update file hunk for path 'a' "
            "is empty",
        ),
        (
            enveloped("*** Update File: a", "-x"),
            "apply_patch verification failed: Failed to read file to update {}/a: No such file or "
            "directory (os error 2)",
        ),
    ],
)
def test_a_patch_that_does_not_fit_is_answered_in_plain_words(
    tmp_path: Path, patch: str, text: str
):
    events: list[Event] = []
    output = run(ApplyPatch(), patch, tool_context(tmp_path, events.append))
    text = text.format(tmp_path)
    assert output == ToolOutput(text, success=False, error_code="PatchFailed")
    intended = (
        [Change(path=f"{tmp_path}/a", kind="update")] if "File: a" in patch else []
    )
    begun = FileChange(id="item_0", changes=intended)
    error = {"code": "PatchFailed", "message": text}
    failed = replace(begun, status="failed", error=error)
    assert events == [ItemStarted(begun), ItemCompleted(failed)]


def refusal(tool: ApplyPatch, patch: str, context: ToolContext) -> tuple[str, str]:
    with pytest.raises(ToolError) as caught:
        run(tool, patch, context)
    return caught.value.code, str(caught.value)


@pytest.mark.parametrize(
    "policy",
    [
        ApprovalPolicy.NEVER,
        GranularPolicy(sandbox_approval=False, rules=True, mcp_elicitations=True),
    ],
)
def test_writing_outside_of_the_sandbox_is_refused(
    tmp_path: Path, policy: AskForApproval
):
    root = tmp_path / "root"
    root.mkdir()
    outside = enveloped("*** Add File: in", "*** Add File: ../out")
    for sandbox, text in [
        (
            workspace(root),
            "patch rejected: writing outside of the project; rejected by user approval settings",
        ),
        (
            SandboxPolicy("read-only"),
            "patch rejected: writing is blocked by read-only sandbox; rejected by user approval "
            "settings",
        ),
    ]:
        events: list[Event] = []
        turn = tool_context(root, events.append, policy=policy, sandbox=sandbox)
        assert refusal(ApplyPatch(), outside, turn) == ("SandboxDenied", text)
        begun, ended = events
        assert isinstance(begun, ItemStarted)
        assert isinstance(begun.item, FileChange)
        assert [Path(change.path).name for change in begun.item.changes] == [
            "out",
            "in",
        ]
        error = {"code": "SandboxDenied", "message": text}
        assert ended == ItemCompleted(replace(begun.item, status="failed", error=error))
    assert [path.name for path in tmp_path.rglob("*")] == ["root"]


def test_files_that_commands_cannot_write_cannot_be_patched_either(tmp_path: Path):
    root, git = tmp_path / "root", tmp_path / "root/a/git"
    (git / "hooks").mkdir(parents=True)
    (root / ".git").symlink_to("a/git")
    (root / ".codex").symlink_to("later/codex")
    (root / "inner").mkdir()
    (tmp_path / "more/separate").mkdir(parents=True)
    (root / "inner/.git").write_text(
        f"gitdir: {tmp_path / 'more/separate'}\n", encoding="ascii"
    )
    package = Path(codex_py.__file__).parent
    policy = replace(
        workspace(root),
        writable_roots=(root, root / "inner", tmp_path / "more", package.parent),
    )
    turn = replace(tool_context(root, ignored), sandbox_policy=policy)
    for path in (
        *(
            ".git/hooks/new",
            "a/git/hooks/new",
            "A/GIT/hooks/new",
            "later/codex/config.toml",
        ),
        *(
            tmp_path / "more/separate/hooks/new",
            package / "new.py",
            Path(sys.prefix) / "new.py",
        ),
    ):
        with pytest.raises(ToolError, match="rejected"):
            run(ApplyPatch(), enveloped(f"*** Add File: {path}"), turn)
    assert run(ApplyPatch(), enveloped("*** Add File: a/new"), turn).success


def test_the_configuration_is_not_for_patches_to_change(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    turn = tool_context(tmp_path, ignored, sandbox=workspace(tmp_path))
    for path in ("home/rules/default.rules", "link/config.toml"):
        code, _ = refusal(
            ApplyPatch(tmp_path / "link"), enveloped(f"*** Add File: {path}"), turn
        )
        assert code == "SandboxDenied"
    assert list(home.iterdir()) == []
    assert run(ApplyPatch(home), enveloped("*** Add File: homely"), turn).success


@pytest.mark.parametrize("folder", ["", "rules"])
def test_no_patch_writes_where_the_home_is_the_workspace(tmp_path: Path, folder: str):
    (tmp_path / "rules").mkdir()
    root = tmp_path / folder
    turn = tool_context(root, ignored, sandbox=workspace(root))
    turn.environment["TMPDIR"] = ""
    patch = enveloped("*** Add File: new.rules")
    assert refusal(ApplyPatch(tmp_path), patch, turn)[0] == "SandboxDenied"


def test_names_above_are_protected_below_a_temporary_directory(tmp_path: Path):
    root = tmp_path / "tmp/project/sub"
    root.mkdir(parents=True)
    (tmp_path / "tmp/project/.git").mkdir()
    turn = tool_context(root, ignored, sandbox=workspace(root))
    turn.environment["TMPDIR"] = str(tmp_path / "tmp")
    for path in ("../.git/hooks/x", "../.codex/rules/x.rules"):
        assert (
            refusal(ApplyPatch(), enveloped(f"*** Add File: {path}"), turn)[0]
            == "SandboxDenied"
        )
    assert run(ApplyPatch(), enveloped("*** Add File: ../beside"), turn).success


def test_temporary_directories_are_writable_unless_excluded(tmp_path: Path):
    root, temporary = tmp_path / "root", tmp_path / "tmp"
    root.mkdir()
    temporary.mkdir()
    patch = enveloped("*** Add File: ../tmp/x")
    for excluded in (True, False):
        sandbox = SandboxPolicy(
            "workspace-write",
            (root,),
            exclude_tmpdir_env_var=excluded,
            exclude_slash_tmp=True,
        )
        turn = tool_context(root, ignored, sandbox=sandbox)
        turn.environment["TMPDIR"] = str(temporary)
        if excluded:
            assert refusal(ApplyPatch(), patch, turn)[0] == "SandboxDenied"
        else:
            assert run(ApplyPatch(), patch, turn).success


def test_the_user_is_asked_about_what_the_sandbox_forbids(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    tool = ApplyPatch()
    approver = ScriptedApprover(ReviewDecision.DENIED, "not there")
    turn = tool_context(
        root,
        ignored,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=workspace(root),
        approver=approver,
    )
    patch = enveloped("*** Add File: ../out", "+x")
    assert refusal(tool, patch, turn) == (
        "ApprovalDenied",
        "patch rejected by user: not there",
    )
    assert not (tmp_path / "out").exists()
    approver.decision = ReviewDecision.APPROVED
    assert run(tool, patch, turn).success
    approver.decision = ReviewDecision.APPROVED_FOR_SESSION
    assert run(tool, patch, turn).success
    approver.decision = ReviewDecision.DENIED
    assert run(tool, patch, turn).success
    assert run(tool, enveloped("*** Add File: in"), turn).success
    assert len(approver.asked) == 3
    assert approver.asked[0] == ApprovalRequest(
        "patch",
        f"diff --git a/{str(tmp_path)[1:]}/out b/{str(tmp_path)[1:]}/out\nnew file mode 100644\n--- /dev/null\n"
        f"+++ b/{str(tmp_path)[1:]}/out\n@@ -0,0 +1 @@\n+x\n",
        root,
        f"writes outside of the sandbox: {tmp_path}/out",
        paths=(tmp_path / "out",),
    )
    assert [(file.path, file.old, file.new) for file in approver.asked[0].files] == [
        (tmp_path / "out", None, b"x\n")
    ]


def test_a_question_names_the_item_that_comes_after_it(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    seen: list[Event] = []
    approver = ScriptedApprover(ReviewDecision.DENIED)
    turn = tool_context(
        root,
        seen.append,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=workspace(root),
        approver=approver,
    )
    patch = enveloped("*** Add File: ../out", "+x")
    refusal(ApplyPatch(), patch, turn)
    approver.decision = ReviewDecision.APPROVED
    run(ApplyPatch(), patch, turn)
    started = [event.item for event in seen if isinstance(event, ItemStarted)]
    assert [item.id for item in started] == ["item_0", "item_1"]
    assert [request.item_id for request in approver.asked] == ["item_0", "item_1"]
    assert [getattr(item, "files", None) for item in started] == [
        (),
        approver.asked[1].files,
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace beside a file with a secret."""
    (tmp_path / "secret").write_text("password=hunter2-hunter2\n", encoding="utf-8")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
@pytest.mark.parametrize(
    "lines",
    [
        ("*** Update File: link", "-password=hunter2-hunter3"),
        ("*** Update File: ../secret", "-password=hunter2-hunter3"),
        ("*** Update File: link", "*** Move to: out.txt", "@@", "+x"),
        ("*** Delete File: ../secret",),
        ("*** Add File: link", "+x"),
    ],
)
def test_files_outside_are_not_read_where_nobody_can_be_asked(
    root: Path, lines: tuple[str, ...], mode: Literal["read-only", "workspace-write"]
):
    (root / "link").symlink_to("../secret")
    events: list[Event] = []
    sandbox = replace(workspace(root), mode=mode)
    turn = tool_context(root, events.append, sandbox=sandbox)
    code, text = refusal(ApplyPatch(), enveloped(*lines), turn)
    assert code == "SandboxDenied"
    assert "hunter" not in text
    begun, ended = events
    assert isinstance(begun, ItemStarted)
    assert isinstance(begun.item, FileChange)
    error = {"code": code, "message": text}
    assert ended == ItemCompleted(replace(begun.item, status="failed", error=error))
    assert "hunter" not in begun.item.diff
    assert sorted(path.name for path in root.iterdir()) == ["link"]


def test_a_patch_in_read_only_mode_still_says_what_differs_in_the_project(root: Path):
    (root / "a").write_text("one\n", encoding="utf-8")
    turn = tool_context(root, ignored, sandbox=SandboxPolicy("read-only"))
    output = run(ApplyPatch(), enveloped("*** Update File: a", "-onf"), turn)
    assert "the file has 'one'" in output.text


def test_a_miss_outside_of_the_sandbox_tells_nothing_of_the_file(root: Path):
    approver = ScriptedApprover(ReviewDecision.APPROVED)
    turn = tool_context(
        root,
        ignored,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=workspace(root),
        approver=approver,
    )
    missing = enveloped("*** Update File: ../secret", "-password=hunter2-hunter3", "+x")
    assert run(ApplyPatch(), missing, turn) == ToolOutput(
        f"apply_patch verification failed: the patch reads {root.parent}/secret, outside of the "
        "sandbox, and does not fit; look at the files with a command first",
        success=False,
        error_code="PatchFailed",
    )
    assert approver.asked == []


def test_the_question_names_every_file_outside_by_its_place(root: Path):
    """The reason names three of them, and a link in the project can have a harmless name."""
    (root / "notes.txt").symlink_to("../secret")
    approver = ScriptedApprover(ReviewDecision.DENIED)
    turn = tool_context(
        root,
        ignored,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=workspace(root),
        approver=approver,
    )
    decoys = [line for name in "abc" for line in (f"*** Add File: ../{name}", "+x")]
    update = ("*** Update File: notes.txt", "@@", "+x")
    assert (
        refusal(ApplyPatch(), enveloped(*decoys, *update), turn)[0] == "ApprovalDenied"
    )
    (request,) = approver.asked
    assert set(request.paths) == {
        root.parent / name for name in ("a", "b", "c", "secret")
    }
    assert "notes.txt" not in request.summary
    assert f"{root.parent}/secret".removeprefix("/") in request.summary


def test_the_target_of_a_moved_link_is_asked_about(root: Path):
    (root / "link").symlink_to("../secret")
    approver = ScriptedApprover(ReviewDecision.DENIED)
    turn = tool_context(
        root,
        ignored,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=workspace(root),
        approver=approver,
    )
    moving = enveloped("*** Update File: link", "*** Move to: out.txt", "@@", "+x")
    assert refusal(ApplyPatch(), moving, turn)[0] == "ApprovalDenied"
    assert [request.reason for request in approver.asked] == [
        f"writes outside of the sandbox: {root.parent}/secret"
    ]
    assert not (root / "out.txt").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs procfs")
@pytest.mark.parametrize("mode", ["workspace-write", "danger-full-access"])
def test_no_patch_reads_what_the_kernel_says(
    root: Path, mode: Literal["workspace-write", "danger-full-access"]
):
    (root / "link").symlink_to("/proc/self/environ")
    turn = tool_context(
        root,
        ignored,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=replace(workspace(root), mode=mode),
        approver=ScriptedApprover(ReviewDecision.APPROVED),
    )
    moving = enveloped("*** Update File: link", "*** Move to: out.txt", "@@", "+x")
    output = run(ApplyPatch(), moving, turn)
    assert not output.success
    assert "PATH=" not in output.text
    assert not (root / "out.txt").exists()
    if mode == "danger-full-access":
        assert output.text == (
            f"apply_patch verification failed: Failed to read file to update {root}/link: "
            "it is on procfs, which is never read"
        )


def test_a_yes_for_the_session_is_for_the_place_and_not_for_its_name(root: Path):
    first, second = root.parent / "first", root.parent / "second"
    first.mkdir()
    second.mkdir()
    (root / "link").symlink_to(first)
    approver = ScriptedApprover(ReviewDecision.APPROVED_FOR_SESSION)
    turn = tool_context(
        root,
        ignored,
        policy=ApprovalPolicy.ON_REQUEST,
        sandbox=workspace(root),
        approver=approver,
    )
    tool, patch = ApplyPatch(), enveloped("*** Add File: link/f", "+x")
    for _ in range(2):
        assert run(tool, patch, turn).success
    (root / "link").unlink()
    (root / "link").symlink_to(second)
    approver.decision = ReviewDecision.DENIED
    assert refusal(tool, patch, turn)[0] == "ApprovalDenied"
    assert [request.reason for request in approver.asked] == [
        f"writes outside of the sandbox: {place}/f" for place in (first, second)
    ]
    assert not (second / "f").exists()


def test_an_untrusting_user_is_asked_about_every_patch(tmp_path: Path):
    approver = ScriptedApprover(ReviewDecision.APPROVED)
    turn = tool_context(
        tmp_path, ignored, policy=ApprovalPolicy.UNTRUSTED, approver=approver
    )
    assert run(ApplyPatch(), enveloped("*** Add File: a"), turn).success
    assert [request.reason for request in approver.asked] == [None]


def test_a_failure_while_writing_is_reported_like_a_command(tmp_path: Path):
    events: list[Event] = []

    def emit(event: Event) -> None:
        events.append(event)
        if isinstance(event, ItemStarted):
            (tmp_path / "dir").write_text("in the way", encoding="utf-8")

    turn = tool_context(tmp_path, emit)
    output = run(
        ApplyPatch(), enveloped("*** Add File: a", "*** Add File: dir/x"), turn
    )
    assert re.match(
        rf"Exit code: 1\nWall time: [\d.]+ seconds\nOutput:\nFailed to write file {tmp_path}/dir/x: ",
        output.text,
    )
    assert (output.success, output.error_code) == (False, "EEXIST")
    assert isinstance(events[-1], ItemCompleted)
    assert isinstance(events[-1].item, FileChange)
    assert events[-1].item.status == "failed"
    assert not (tmp_path / "a").exists()


def test_cancellation_while_writing_waits_for_the_end(tmp_path: Path):
    events: list[Event] = []
    (tmp_path / "a").write_text("1\n", encoding="utf-8")

    async def cancelled() -> None:
        calls: list[asyncio.Task[ToolOutput]] = []

        def emit(event: Event) -> None:
            events.append(event)
            if isinstance(event, ItemStarted):
                # Arrives at the next wait, which is the one for the writing thread.
                calls[0].cancel()

        patch = enveloped("*** Update File: a", "-1", "+2", "*** Add File: b")
        turn = tool_context(tmp_path, emit)
        calls.append(asyncio.create_task(ApplyPatch().apply(patch, tmp_path, turn)))
        with pytest.raises(asyncio.CancelledError):
            await calls[0]

    asyncio.run(cancelled())
    assert (tmp_path / "a").read_text(encoding="utf-8") == "2\n"
    assert (tmp_path / "b").exists()
    assert [type(event) for event in events] == [
        ItemStarted,
        FilesPatched,
        ItemCompleted,
    ]


def test_new_files_go_by_the_umask(tmp_path: Path):
    before = os.umask(0o027)
    try:
        run(
            ApplyPatch(),
            enveloped("*** Add File: d/a"),
            tool_context(tmp_path, ignored),
        )
    finally:
        os.umask(before)
    made = [tmp_path / "d", tmp_path / "d/a"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o750, 0o640]


def test_replaced_files_are_kept_and_cut_off_text_is_told(tmp_path: Path):
    home, root = tmp_path / "home", tmp_path / "root"
    root.mkdir()
    (root / "a").write_text("1\n", encoding="utf-8")
    journal = Journal(home, root)
    update = enveloped("*** Update File: a", "-1", "+2")
    for moment in count():
        assert killed_at(moment, lambda: applied(update, root, journal))
        # For a moment its name is missing.
        if (root / "a").exists() and (root / "a").read_text(encoding="utf-8") == "2\n":
            break
        journal.recover()
    tool = ApplyPatch(home)
    output = run(tool, update, tool_context(root, ignored))
    assert output.text.endswith(
        f"M a\nNote: A patch in {root} was cut off while it was written; it has been taken back.\n"
    )
    plan_undo(journal).commit()
    assert (root / "a").read_text(encoding="utf-8") == "1\n"


def applied(patch: str, cwd: Path, journal: Journal) -> None:
    journal.recover()
    plan_patch(patch, cwd).commit(journal)


def test_an_ambiguous_patch_can_be_refused(tmp_path: Path):
    (tmp_path / "a").write_text("x\ny\nx\nx\n", encoding="utf-8")
    patch = enveloped("*** Update File: a", "-x", "+z")
    output = run(ApplyPatch(unambiguous=True), patch, tool_context(tmp_path, ignored))
    assert (output.success, output.text) == (
        False,
        f"apply_patch verification failed: {tmp_path}/a: hunk 1 fits at lines 1, 3, 4, and it is not clear "
        "which is meant: add lines of context, or an @@ line that names what it is in.",
    )
    clear = enveloped("*** Update File: a", " y", "-x", "+z")
    assert run(
        ApplyPatch(unambiguous=True), clear, tool_context(tmp_path, ignored)
    ).success
    assert (tmp_path / "a").read_text(encoding="utf-8") == "x\ny\nz\nx\n"


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "lines",
    [
        ("*** Add File: {}", "+x"),
        ("*** Delete File: {}",),
        ("*** Update File: a", "*** Move to: {}", "-x"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused_at_once(
    tmp_path: Path, lines: tuple[str, ...]
):
    patch = enveloped(*lines).format("a/" * 500_000)
    events: list[Event] = []
    output = run(ApplyPatch(), patch, tool_context(tmp_path, events.append))
    assert "is a path of 1000000 characters; 4096 are the most" in output.text
    assert len(str(events)) < 10_000


@pytest.mark.timeout(10)
def test_a_working_directory_that_no_folder_can_be_is_refused_at_once(tmp_path: Path):
    cwd = tmp_path / ("a/" * 500_000)
    turn = tool_context(tmp_path, ignored)
    output = asyncio.run(
        ApplyPatch().apply(enveloped("*** Add File: x", "+x"), cwd, turn)
    )
    assert "characters; 4096 are the most" in output.text


def test_in_the_home_itself_its_settings_and_logins_are_out_of_reach(tmp_path: Path):
    home = tmp_path / "home"
    (home / "worktrees").mkdir(parents=True)
    for name in ("config.toml", "auth.json"):
        (home / name).write_text("key = 'hunter2'\n", encoding="utf-8")
    (home / "worktrees" / "link").symlink_to("../auth.json")
    approver = ScriptedApprover(ReviewDecision.DENIED)
    for cwd in (home, home / "worktrees"):
        turn = tool_context(
            cwd,
            ignored,
            policy=ApprovalPolicy.ON_REQUEST,
            sandbox=workspace(cwd),
            approver=approver,
        )
        for path in (home / "config.toml", home / "rules/default.rules"):
            assert refusal(ApplyPatch(home), enveloped(f"*** Add File: {path}"), turn)[
                0
            ] == ("ApprovalDenied")
        for path in (home / "auth.json", home / "worktrees/link"):
            guess = enveloped(f"*** Update File: {path}", "-key = 'hunter3'")
            code, text = refusal(ApplyPatch(home), guess, turn)
            assert (code, "hunter" in text) == ("SandboxDenied", False)
    assert run(ApplyPatch(home), enveloped("*** Add File: mine"), turn).success
