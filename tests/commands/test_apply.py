"""`codex-py apply`, the real program.

Tests `commands/apply/apply_command.py`, `commands/apply/input.py`,
`commands/apply/report.py` and `commands/apply/unasked.py`.
"""

import json
import os
import pty
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.cli.help_pages import help_text
from tests.support.git import git
from tests.support.patching import enveloped
from tests.support.program import environment, run_codex_py
from tests.support.repository import make_repository

DIFF = """\
diff --git a/f b/f
--- a/f
+++ b/f
@@ -1,3 +1,3 @@
 a
-b
+B
 c
diff --git a/sub/g b/sub/g
--- a/sub/g
+++ b/sub/g
@@ -1 +1 @@
-x
+y
"""
ENVELOPE = enveloped(
    "*** Update File: f", "-b", "+B", "*** Update File: sub/g", "-x", "+y"
)
SUMMARY = "Success. Updated the following files:\nM f\nM sub/g\n"
AFTER = {"f": "a\nB\nc\n", "sub/g": "y\n"}


class Place:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "root"
        self.home.mkdir()
        (self.root / "sub").mkdir(parents=True)
        (self.root / "f").write_text("a\nb\nc\n", encoding="utf-8")
        (self.root / "sub" / "g").write_text("x\n", encoding="utf-8")
        self.before = self.tree()

    def tree(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.root)): path.read_text("utf-8", "surrogateescape")
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and ".git" not in path.parts
        }

    def apply(
        self,
        *argv: str,
        stdin: str = "",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> tuple[int, str, str]:
        done = run_codex_py(
            ["apply", *argv],
            self.home,
            cwd or self.root,
            env,
            stdin.encode(errors="surrogateescape"),
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("patch", "found"),
    [
        (ENVELOPE, "an envelope"),
        (DIFF, "a unified diff"),
        (
            f"Do this:\n\n```diff\n{DIFF}```\nDone.\n",
            "a unified diff in a fenced block",
        ),
        (f"Do this:\n\n```\n{ENVELOPE}\n```\nDone.\n", "an envelope in other text"),
    ],
)
def test_a_found_patch_is_applied(place: Place, patch: str, found: str) -> None:
    assert place.apply(stdin=patch) == (
        0,
        SUMMARY,
        f"Found {found} in standard input.\n",
    )
    assert place.tree() == AFTER


def test_a_file_may_be_named(place: Place) -> None:
    (place.home / "p.diff").write_text(DIFF, encoding="utf-8")
    assert place.apply("../home/p.diff") == (
        0,
        SUMMARY,
        "Found a unified diff in ../home/p.diff.\n",
    )
    assert place.apply("-R", "-", stdin=DIFF)[0] == 0
    assert place.tree() == place.before


def test_a_check_changes_nothing(place: Place) -> None:
    assert place.apply("--check", stdin=DIFF) == (
        0,
        "The patch fits. It would update the following files:\nM f\nM sub/g\n",
        "Found a unified diff in standard input.\n",
    )
    assert place.tree() == place.before
    assert not (place.home / "codex-py").exists()


def test_an_applied_patch_can_be_undone(place: Place) -> None:
    assert place.apply(stdin=ENVELOPE)[0] == 0
    assert run_codex_py(["undo"], place.home, place.root).returncode == 0
    assert place.tree() == place.before


@pytest.mark.parametrize(
    ("patch", "argv", "code", "message"),
    [
        ("", [], 65, "the patch is empty: no files were modified"),
        (enveloped(), [], 65, "the patch is empty: no files were modified"),
        (
            "hello",
            [],
            65,
            "Invalid patch: no patch can be read from this: it has neither",
        ),
        (
            f"```\n{DIFF}```\n```\n{DIFF}```\n",
            [],
            65,
            "several fenced blocks have unified diffs",
        ),
        (f"{ENVELOPE}\n{DIFF}", [], 65, ""),
        (enveloped("*** Add File: \udcff", "+x"), [], 65, "an envelope must be UTF-8"),
        (ENVELOPE[:-10], [], 65, "The last line of the patch must be '*** End Patch'"),
        ("\n".join(DIFF.split("\n")[:6]), [], 65, "the diff is cut short"),
        (DIFF.replace("-b", "-q"), [], 7, "the file has 'b', the patch 'q'"),
        (ENVELOPE.replace("-b", "-q"), [], 7, "Failed to find expected lines in"),
        (DIFF.replace("sub/g", "no/g"), [], 7, "no/g: No such file or directory"),
        (DIFF, ["-p0"], 7, "With -p1 it fits."),
        (DIFF, ["--strict", "--directory", ".."], 7, ""),
        (enveloped("*** Add File: ../x", "+x"), [], 7, "outside of"),
        (enveloped("*** Add File: .git/hooks/x", "+x"), [], 7, "protected"),
        (enveloped("*** Update File: sub", "-x", "+y"), [], 7, "is not a file"),
        (enveloped("*** Add File: sub", "+y"), [], 7, "sub: Is a directory"),
        (ENVELOPE, ["-R"], 2, "an envelope cannot be reversed; `codex-py undo`"),
        (ENVELOPE, ["-p1"], 2, "--strip is for unified diffs, and this is an envelope"),
        (ENVELOPE, ["--partial"], 2, "--partial is for unified diffs"),
        (DIFF, ["--strip", "x"], 2, "-p/--strip: 'x' is no number of directories"),
        (DIFF, ["--convert", "git"], 2, "--convert: 'git' is not a possible value"),
        (
            DIFF,
            ["--convert", "unified", "--json"],
            2,
            "--json does not go with --convert",
        ),
        (DIFF, ["--frob"], 2, "unknown option --frob."),
        (
            DIFF,
            ["missing"],
            2,
            "Failed to read the patch 'missing': No such file or directory",
        ),
        (DIFF, ["."], 2, "Failed to read the patch '.': Is a directory"),
        (
            DIFF,
            ["-C", "missing"],
            2,
            "cannot work in 'missing': No such file or directory",
        ),
    ],
)
def test_a_failure_changes_nothing_and_says_why(
    place: Place, patch: str, argv: list[str], code: int, message: str
) -> None:
    found = place.apply(*argv, stdin=patch)
    assert found[:2] == (code, "")
    assert message in found[2]
    assert "\nError: " in f"\n{found[2]}"
    assert place.tree() == place.before


@pytest.mark.parametrize("hunk", ["", "@@ -1 +1 @@\n-secret\n+changed\n"])
@pytest.mark.parametrize("how", ["copy", "rename"])
@pytest.mark.parametrize(
    "source",
    [
        ".git/config",
        ".codex/config.toml",
        ".agents/x",
        "sub/.git/config",
        ".GIT/config",
    ],
)
def test_a_protected_file_is_not_copied_to_another_name(
    place: Place, source: str, how: str, hunk: str
) -> None:
    path = place.root / source
    path.parent.mkdir(exist_ok=True)
    path.write_text("secret\n", encoding="utf-8")
    patch = (
        f"diff --git a/{source} b/made\nsimilarity index 90%\n"
        f"{how} from {source}\n{how} to made\n"
    )
    if hunk:
        patch += f"--- a/{source}\n+++ b/made\n{hunk}"
    code, _, err = place.apply(stdin=patch)
    assert code == 7
    assert f"as other systems spell it): {path}" in err
    assert not (place.root / "made").exists()
    assert path.read_text(encoding="utf-8") == "secret\n"


def added(name: str, mode: str = "100644", text: str = "x") -> str:
    return (
        f"diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n"
        f"@@ -0,0 +1 @@\n+{text}\n\\ No newline at end of file\n"
    )


@pytest.mark.parametrize(
    "argv", [[], ["--check"], ["-R"], ["--partial"], ["--convert", "envelope"]]
)
@pytest.mark.parametrize(
    "name", ["n" * 256, f"{'n' * 256}/x", f"new/{'n' * 256}", "loop/x"]
)
def test_a_name_that_no_file_can_have_is_told(
    place: Place, argv: list[str], name: str
) -> None:
    (place.root / "loop").symlink_to("loop")
    code, out, err = place.apply(*argv, stdin=added(name))
    assert (code, out) == (7, "")
    assert "Traceback" not in err
    assert name in err
    assert "With -p0 it fits" not in err
    assert place.tree() == place.before


def test_the_rest_of_a_patch_is_applied_without_a_name_that_no_file_can_have(
    place: Place,
) -> None:
    name = "n" * 256
    renamed = f"--- {name}/f\n+++ {name}/f.new\n@@ -1 +1 @@\n-1\n+2\n"
    code, out, err = place.apply(
        "--partial", "-p0", stdin=renamed + added("new").replace("b/", "")
    )
    assert (code, out) == (7, "Success. Updated the following files:\nA new\n")
    assert f"{name}/f.new: File name too long (os error 36)" in err
    assert (place.root / "f.new.rej").is_file()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (".mcp.json", "agents start"),
        ("sub/.envrc", "direnv runs it"),
        (".vscode/tasks.json", "editors run"),
        (".VSCode/Settings.json", "editors run"),
        (".gitmodules", "git fetches"),
        (".github/workflows/ci.yml", "on the server, with its keys"),
        (".github/actions/a/action.yml", "on the server, with its keys"),
        (".gitlab-ci.yml", "on the server, with its keys"),
        (".devcontainer/devcontainer.json", "editors run"),
        (".husky/pre-commit", "as a hook"),
        (".pre-commit-config.yaml", "as a hook"),
        (".gitattributes", "git converts"),
        ("mcp.json", ""),
        ("docs/envrc", ""),
        (".github/CODEOWNERS", ""),
        (".vscode.json", ""),
    ],
)
def test_a_file_that_programs_use_unasked_is_noted(
    place: Place, name: str, why: str
) -> None:
    (place.root / name).parent.mkdir(parents=True, exist_ok=True)
    for patch in (
        added(name),
        f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n",
    ):
        code, _, err = place.apply("--check", stdin=patch)
        assert code == 0, err
        assert (f"Note: {name} is new: " in err) is bool(why), err
        assert why in err
    (place.root / name).write_text("1\n", encoding="utf-8")
    changed = f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-1\n+2\n"
    facts = json.loads(place.apply("--json", stdin=changed)[1])
    assert [note.partition(":")[0] for note in facts["notes"]] == [
        f"{name} is changed"
    ] * bool(why)
    removed = f"--- a/{name}\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n"
    assert json.loads(place.apply("--json", stdin=removed)[1])["notes"] == []


def test_a_new_submodule_is_named_as_one(place: Place) -> None:
    code, out, err = place.apply(
        stdin=added("sm", "160000", f"Subproject commit {'a' * 40}")
    )
    assert (code, out) == (0, "Success. Updated the following files:\nA sm\n")
    assert (
        "Note: sm is a submodule: its empty folder is made, and nothing is fetched.\n"
        in err
    )
    assert [*(place.root / "sm").iterdir()] == []


@pytest.mark.parametrize(
    ("target", "outside"),
    [
        ("f", ""),
        ("../../home/\x1b[2J", ", outside of {root}"),
        ("/etc/passwd", ", outside of {root}"),
    ],
)
def test_a_new_link_is_shown_with_the_place_to_which_it_leads(
    place: Place, target: str, outside: str
) -> None:
    patch = added("sub/l", "120000", "../f" if target == "f" else target)
    target = "../f" if target == "f" else target
    shown = target.replace("\x1b", "\u241b")
    note = f"sub/l is a symbolic link to {shown}{outside.format(root=place.root)}."
    for argv in (["--check"], []):
        code, _, err = place.apply(*argv, stdin=patch)
        assert (code, f"Note: {note}\n" in err) == (0, True), err
    undone = run_codex_py(["undo"], place.home, place.root)
    assert b"\nD sub/l\n" in undone.stdout
    redone = run_codex_py(["redo", "--json"], place.home, place.root)
    row = {"path": f"{place.root}/sub/l", "kind": "add", "link": target}
    assert json.loads(redone.stdout)["files"] == [row]
    run_codex_py(["undo"], place.home, place.root)
    assert (
        f"\nA sub/l -> {shown}\n"
        in run_codex_py(["redo"], place.home, place.root).stdout.decode()
    )
    run_codex_py(["undo"], place.home, place.root)
    facts = json.loads(place.apply("--json", stdin=patch)[1])
    assert facts["files"] == [row]
    assert facts["notes"] == [note.replace("\u241b", "\x1b")]


def test_new_files_go_by_the_umask_and_old_ones_come_back_as_they_were(
    place: Place,
) -> None:
    """As git makes them."""
    patch = (
        "diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+x\n"
        "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
        "diff --git a/sub/g b/sub/g\ndeleted file mode 100644\n--- a/sub/g\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n"
    )
    (place.root / "f").chmod(0o604)
    (place.root / "sub" / "g").chmod(0o751)
    before = modes(place.root)
    after = {"f": 0o604, "new": 0o640, "run": 0o750}
    for argv, umask, expected in (
        (["apply"], 0o027, after),
        (["undo"], 0o077, before),
        (["undo", "2"], 0o022, after),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "codex_py", *argv],
            cwd=place.root,
            env=environment(place.home),
            input=patch.encode(),
            capture_output=True,
            timeout=120,
            check=False,
            umask=umask,
        )
        assert (done.returncode, modes(place.root)) == (0, expected), done.stderr


def modes(root: Path) -> dict[str, int]:
    return {
        str(path.relative_to(root)): stat.S_IMODE(path.stat().st_mode)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_the_repository_is_named_from_below(place: Place) -> None:
    make_repository(place.root)
    code, _, stderr = place.apply(stdin=DIFF, cwd=place.root / "sub")
    assert (code, stderr.split("\n")[-2]) == (7, f"In {place.root} it fits: use -C.")
    assert place.apply("-C", "..", stdin=DIFF, cwd=place.root / "sub")[0] == 0


def test_names_may_be_put_below_a_folder(place: Place) -> None:
    patch = enveloped("*** Update File: g", "-x", "+y")
    assert place.apply("--directory", "sub", stdin=patch)[0] == 0
    assert place.tree() == {**place.before, "sub/g": "y\n"}
    diff = "--- g\n+++ g\n@@ -1 +1 @@\n-y\n+z\n"
    assert place.apply("--directory=sub", "-p0", stdin=diff)[0] == 0
    assert place.tree() == {**place.before, "sub/g": "z\n"}


def test_strict_refuses_what_is_guessed(place: Place) -> None:
    (place.root / "f").write_text("a\nb \nc\n", encoding="utf-8")
    before = place.tree()
    for patch in (DIFF, ENVELOPE):
        code, _, stderr = place.apply("--strict", stdin=patch)
        assert (code, "exact" in stderr) == (7, True)
        assert place.tree() == before


def test_a_part_may_be_applied(place: Place) -> None:
    (place.root / "f").write_text("a\nq\nc\n", encoding="utf-8")
    assert place.apply("--partial", "--check", stdin=DIFF)[:2] == (
        7,
        "Not all of the patch fits. It would update the following files:\nM sub/g\n",
    )
    code, stdout, stderr = place.apply("--partial", stdin=DIFF)
    assert (code, stdout) == (7, "Success. Updated the following files:\nM sub/g\n")
    assert f"What was left out is in {place.root}/f.rej\n" in stderr
    rejected = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    assert place.tree() == {"f": "a\nq\nc\n", "f.rej": rejected, "sub/g": "y\n"}


def test_json_has_all_there_is_to_know(place: Place) -> None:
    (place.root / "f").write_text("0\na\nb\nc\n", encoding="utf-8")
    code, stdout, _ = place.apply("--json", stdin=DIFF)
    hunk: dict[str, Any] = {"hunk": 1, "fuzz": 0, "level": "exact", "also_at": []}
    f, g = f"{place.root}/f", f"{place.root}/sub/g"
    assert (code, json.loads(stdout)) == (
        0,
        {
            "format": "unified",
            "found": "a unified diff",
            "source": "standard input",
            "applied": True,
            "files": [{"path": f, "kind": "update"}, {"path": g, "kind": "update"}],
            "hunks": [
                {"path": f, "line": 4, "placed": 2, "offset": 1, **hunk},
                {"path": g, "line": 12, "placed": 1, "offset": 0, **hunk},
            ],
            "notes": [f"{f}: hunk 1 was applied at line 2 (offset +1)."],
            "reasons": [],
            "rejects": [],
            "conflicts": [],
            "undo": 1,
        },
    )
    code, stdout, stderr = place.apply("--json", stdin=DIFF)
    failure = json.loads(stdout)
    assert (code, failure["applied"], failure["error"]["kind"]) == (7, False, "match")
    assert f"Error: {failure['error']['message']}\n" in stderr


def test_patches_are_translated(place: Place) -> None:
    _, envelope, _ = place.apply("--convert", "envelope", stdin=DIFF)
    _, diff, _ = place.apply("--convert", "unified", stdin=envelope)
    _, back, _ = place.apply("-R", "--convert", "unified", stdin=envelope)
    assert place.tree() == place.before
    assert diff == DIFF
    assert place.apply(stdin=envelope)[0] == 0
    assert place.tree() == AFTER
    assert place.apply(stdin=back)[0] == 0
    assert place.tree() == place.before


def test_git_merges_what_it_knows(place: Place) -> None:
    git(place.root, "init", "-q")
    git(place.root, "add", ".")
    git(place.root, "commit", "-qm", "First")
    (place.root / "f").write_text("a\nB\nc\n", encoding="utf-8")
    diff = git(place.root, "diff") + "\n"
    # Nothing that the repository's settings name is run.
    for setting in ("core.fsmonitor", "diff.external"):
        git(place.root, "config", setting, f"touch {place.home}/run")
    (place.root / "f").write_text("a\nb\nc\nd\n", encoding="utf-8")
    code, _, stderr = place.apply("--3way", stdin=diff.replace(" c", " C"))
    assert (code, place.tree()["f"]) == (0, "a\nB\nc\nd\n"), stderr
    (place.root / "f").write_text("a\nmine\nc\n", encoding="utf-8")
    assert place.apply(stdin=diff)[0] == 7
    code, _, stderr = place.apply("-3", stdin=diff)
    assert (code, "merged with conflicts" in stderr) == (7, True)
    assert place.tree()["f"].split("\n")[1:6] == [
        *("<<<<<<< ours", "mine", "=======", "B", ">>>>>>> patch"),
    ]
    assert not (place.home / "run").exists()


def test_git_is_not_taken_from_the_tree(place: Place) -> None:
    fake = place.root / "git"
    fake.write_text(f"#!/bin/sh\ntouch {place.home}/run\n", encoding="utf-8")
    fake.chmod(0o755)
    index = DIFF.replace("--- a/f", "index 1234567..89abcde 100644\n--- a/f").replace(
        "-b", "-q"
    )
    found = place.apply(
        "--3way", stdin=index, env={"PATH": f"{place.root}:{os.environ['PATH']}"}
    )
    assert found[0] == 7
    assert not (place.home / "run").exists()


SESSION_ID = "01a1fd8c-88b2-7d8c-8a6c-9d795f0bbc4c"


def write_session(place: Place, *items: Mapping[str, Any]) -> None:
    folder = place.home / "sessions/2026/01/02"
    folder.mkdir(parents=True)
    meta = {
        "id": SESSION_ID,
        "cwd": str(place.root),
        "originator": "x",
        "cli_version": "1",
    }
    lines = [("session_meta", meta), *[("response_item", item) for item in items]]
    (folder / f"rollout-2026-01-02T03-04-05-{SESSION_ID}.jsonl").write_text(
        "".join(
            [
                json.dumps({"timestamp": "T", "type": kind, "payload": payload}) + "\n"
                for kind, payload in lines
            ]
        ),
        encoding="utf-8",
    )


def call(name: str, **arguments: Any) -> dict[str, Any]:
    encoded = json.dumps(arguments)
    return {"type": "function_call", "name": name, "arguments": encoded, "call_id": "1"}


SCRIPT = f"apply_patch <<'EOF'\n{ENVELOPE}\nEOF\n"


@pytest.mark.parametrize(
    "item",
    [
        {
            "type": "custom_tool_call",
            "name": "apply_patch",
            "input": ENVELOPE,
            "call_id": "1",
        },
        call("apply_patch", input=ENVELOPE),
        call("exec_command", cmd=SCRIPT),
        call("shell", command=["bash", "-lc", SCRIPT]),
        call("shell_command", command=f"cd sub && {SCRIPT}", workdir="sub/.."),
        {
            "type": "local_shell_call",
            "call_id": "1",
            "action": {"type": "exec", "command": ["apply_patch", ENVELOPE]},
        },
    ],
    ids=["custom", "function", "exec_command", "shell", "shell_command", "local_shell"],
)
def test_on_a_terminal_the_last_patch_of_the_session_is_applied(
    place: Place, item: dict[str, Any]
) -> None:
    other = {"type": "message", "role": "user", "content": "apply it"}
    if "sub/.." in str(item):
        item = json.loads(
            json.dumps(item).replace("sub/g", "g").replace("File: f", "File: ../f")
        )
    write_session(place, call("apply_patch", input="older"), item, other)
    code, shown = on_terminal(place, "apply")
    assert f"Found an envelope in the last patch of session {SESSION_ID}." in shown
    assert (code, place.tree()) == (0, AFTER)


def test_there_may_be_no_session_or_no_patch(place: Place) -> None:
    code, shown = on_terminal(place, "apply")
    assert (code, f"Error: no session was held in {place.root};" in shown) == (1, True)
    write_session(place)
    code, shown = on_terminal(place, "apply")
    assert (code, f"Error: the session {SESSION_ID} made no patch" in shown) == (
        1,
        True,
    )


def test_a_terminal_gets_a_coloured_diff_that_cannot_steer_it(place: Place) -> None:
    (place.home / "p").write_text(
        enveloped("*** Add File: n", "+\x1b[2J", "*** Delete File: f"), encoding="utf-8"
    )
    code, shown = on_terminal(place, "apply", "--check", "../home/p")
    assert code == 0
    assert shown.endswith(
        "\x1b[1m+++ b/n\x1b[0m\n\x1b[36m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+␛[2J\x1b[0m\n"
        "\x1b[1mdiff --git a/f b/f\x1b[0m\ndeleted file mode 100644\n\x1b[1m--- a/f\x1b[0m\n"
        "\x1b[1m+++ /dev/null\x1b[0m\n\x1b[36m@@ -1,3 +0,0 @@\x1b[0m\n"
        "\x1b[31m-a\x1b[0m\n\x1b[31m-b\x1b[0m\n\x1b[31m-c\x1b[0m\n"
        "The patch fits. It would update the following files:\nA n\nD f\n"
    )


def test_a_terminal_shows_files_in_the_order_of_the_patch_and_their_modes(
    place: Place,
) -> None:
    (place.home / "p").write_text(
        "diff --git a/sub/g b/a\nrename from sub/g\nrename to a\n"
        "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
        "diff --git a/b b/b\nnew file mode 100755\n",
        encoding="utf-8",
    )
    code, shown = on_terminal(place, "apply", "../home/p")
    plain = shown.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert code == 0
    assert (place.home / "p").read_text(encoding="utf-8") in plain


def on_terminal(place: Place, *argv: str) -> tuple[int, str]:
    """The exit code, and all that is printed, with a terminal for all three descriptors."""
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "codex_py", *argv],
        cwd=place.root,
        env=environment(place.home, {"TERM": "xterm"}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    with program:
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            # How Linux says that the other end is closed.
            pass
        finally:
            os.close(ours)
        return program.wait(120), shown.decode().replace("\r\n", "\n")


def test_help_is_printed(place: Place) -> None:
    assert place.apply("--help") == (0, help_text("apply"), "")


@pytest.mark.parametrize("argv", [[], ["--check"], ["--convert", "unified"]])
def test_no_file_outside_is_read(place: Place, argv: list[str]) -> None:
    (place.home / "secret").write_text("password=hunter2\n", encoding="utf-8")
    (place.root / "link").symlink_to(place.home / "secret")
    patch = enveloped("*** Update File: link", "-password=hunter3", "+x")
    code, stdout, stderr = place.apply(*argv, stdin=patch)
    assert (code, stdout) == (7, "")
    assert f"{place.home}/secret is outside of the project, and was not read" in stderr
    diff = "--- link\n+++ link\n@@ -1 +1 @@\n-password=hunter3\n+x\n"
    code, _, stderr = place.apply(stdin=diff)
    assert code == 7
    assert "hunter2" not in stderr


@pytest.mark.timeout(30)
def test_the_patch_itself_is_a_file_a_pipe_or_standard_input(
    place: Place, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=pipe.write_text, args=(DIFF,), kwargs={"encoding": "utf-8"}
    )
    writer.start()
    assert place.apply("--check", str(pipe))[0] == 0
    writer.join()
    assert place.apply("--check", "/dev/stdin", stdin=DIFF)[0] == 0
    code, _, stderr = place.apply("/dev/zero")
    assert (code, "it is a device" in stderr) == (2, True)
    if sys.platform == "linux":
        assert (
            "it is on procfs, which is never read"
            in place.apply("/proc/self/environ")[2]
        )
