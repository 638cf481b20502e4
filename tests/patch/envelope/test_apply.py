"""Also tests `patch/files/tree.py`."""

import os
import socket
import stat
from contextlib import chdir
from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.plan import PatchPlan, writable_under
from codex_py.protocol.patched_file import PatchedFile


def enveloped(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def plan(cwd: Path, *lines: str) -> PatchPlan:
    return plan_patch(enveloped(*lines), cwd)


def apply(cwd: Path, *lines: str) -> str:
    planned = plan(cwd, *lines)
    planned.commit()
    return planned.summary()


def refusal(cwd: Path, *lines: str) -> str:
    before = tree(cwd)
    with pytest.raises(PatchError) as caught:
        apply(cwd, *lines)
    assert tree(cwd) == before
    return str(caught.value)


def tree(root: Path) -> dict[str, bytes | None]:
    """Contents by relative path; None for a directory, the target for a link."""
    return {
        str(path.relative_to(root)): (
            os.fsencode(path.readlink())
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else None
        )
        for path in sorted(root.rglob("*"))
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_sections_are_applied_and_summed_up_by_kind(tmp_path: Path):
    (tmp_path / "m").write_text("a\n", encoding="utf-8")
    (tmp_path / "d").write_bytes(b"\xff\0")
    (tmp_path / "old").write_text("x\n", encoding="utf-8")
    summary = apply(
        tmp_path,
        *("*** Delete File: d", "*** Update File: ./m", "-a", "+b"),
        *(
            "*** Update File: old",
            "*** Move to: sub/new",
            "-x",
            "+y",
            "*** Add File: n/a ",
            "+1",
        ),
    )
    assert summary == (
        "Success. Updated the following files:\nA n/a\nM ./m\nM sub/new\nD d\n"
    )
    assert tree(tmp_path) == {
        "m": b"b\n",
        "n": None,
        "n/a": b"1\n",
        "sub": None,
        "sub/new": b"y\n",
    }


def test_later_sections_see_earlier_ones(tmp_path: Path):
    (tmp_path / "a").write_text("1\n", encoding="utf-8")
    apply(
        tmp_path,
        *("*** Update File: a", "-1", "+2", "*** Update File: a", "-2", "+3"),
        *("*** Add File: b", "+x", "*** Update File: b", "*** Move to: c", "-x", "+y"),
        *("*** Delete File: c", "*** Add File: c", "+z"),
    )
    assert tree(tmp_path) == {"a": b"3\n", "c": b"z\n"}


def test_a_deleted_file_can_give_its_name_to_a_directory(tmp_path: Path):
    (tmp_path / "a").write_text("1\n", encoding="utf-8")
    apply(tmp_path, "*** Delete File: a", "*** Add File: a/b", "+2")
    assert tree(tmp_path) == {"a": None, "a/b": b"2\n"}


def test_nothing_is_written_if_any_section_fails(tmp_path: Path):
    (tmp_path / "a").write_text("1\n", encoding="utf-8")
    message = refusal(
        tmp_path,
        "*** Add File: new/x",
        "+x",
        "*** Delete File: a",
        "*** Delete File: missing",
    )
    assert message == (
        f"Failed to delete file {tmp_path}/missing: No such file or directory (os error 2)"
    )


def test_the_failures_of_all_sections_are_told(tmp_path: Path):
    message = refusal(
        tmp_path, "*** Delete File: x", "*** Delete File: x", "*** Delete File: y"
    )
    assert message == (
        f"Failed to delete file {tmp_path}/x: No such file or directory (os error 2)\n\n"
        f"Failed to delete file {tmp_path}/y: No such file or directory (os error 2)"
    )


def test_an_empty_patch_is_an_error(tmp_path: Path):
    with pytest.raises(PatchError, match=r"^No files were modified\.$") as caught:
        plan(tmp_path)
    assert caught.value.kind == "empty"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            ["*** Add File: d"],
            "Failed to write file {}/d: Is a directory (os error 21)",
        ),
        (
            ["*** Add File: f/x"],
            "Failed to write file {}/f/x: Not a directory (os error 20)",
        ),
        (
            ["*** Add File: n/x", "*** Add File: n"],
            "Failed to write file {}/n: Is a directory (os error 21)",
        ),
        (
            ["*** Add File: n", "*** Add File: n/x"],
            "Failed to write file {}/n/x: Not a directory (os error 20)",
        ),
        (
            ["*** Delete File: d"],
            "Failed to delete file {}/d: Is a directory (os error 21)",
        ),
        (
            ["*** Delete File: ld"],
            "Failed to delete file {}/ld: Is a directory (os error 21)",
        ),
        (
            ["*** Update File: d", "+x"],
            "Failed to read file to update {0}/d: path `{0}/d` is not a file",
        ),
        (
            ["*** Update File: x/../y", "+x"],
            "Failed to read file to update {}/y: No such file or directory (os error 2)",
        ),
        (
            ["*** Delete File: f", "*** Update File: f", "+x"],
            "Failed to read file to update {}/f: No such file or directory (os error 2)",
        ),
        (
            ["*** Update File: latin", "-é", "+x"],
            "Failed to read file to update {}/latin: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        (
            ["*** Update File: cut", "-a", "+é"],
            "Failed to read file to update {}/cut: incomplete utf-8 byte sequence from index 2",
        ),
        (["*** Add File: a\0b"], "path 'a\\x00b' has a NUL in it"),
        (["*** Delete File: a\0b"], "path 'a\\x00b' has a NUL in it"),
        (
            ["*** Update File: f", "*** Move to: a\0b", "@@", "-1", "+2"],
            "path 'a\\x00b' has a NUL in it",
        ),
    ],
)
def test_a_patch_that_the_files_do_not_allow_is_refused(
    tmp_path: Path, section: list[str], message: str
):
    (tmp_path / "f").write_text("1\n", encoding="utf-8")
    (tmp_path / "d").mkdir()
    (tmp_path / "ld").symlink_to("d")
    (tmp_path / "latin").write_bytes(b"\xe9\n")
    (tmp_path / "cut").write_bytes(b"a\n\xe2\x82")
    assert refusal(tmp_path, *section) == message.format(tmp_path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("pipe", "a named pipe"), ("socket", "a socket"), ("device", "a device")],
)
def test_special_files_are_left_alone(tmp_path: Path, name: str, kind: str):
    path = tmp_path / name
    with socket.socket(socket.AF_UNIX) as listener:
        match name:
            case "pipe":
                os.mkfifo(path)
            case "socket":
                with chdir(tmp_path):
                    # The whole name may be longer than one of a socket can be.
                    listener.bind(name)
            case _:
                # Who is not root can make none, but may patch a link to one.
                path.symlink_to("/dev/null")
    before = path.lstat()
    (tmp_path / "f").write_text("1\n", encoding="utf-8")
    update = (f"*** Update File: {name}", "-1", "+2")
    assert refusal(tmp_path, *update) == (
        f"Failed to read file to update {path}: path `{path}` is not a file"
    )
    refused = f"it is {kind}, not a file"
    assert refusal(tmp_path, f"*** Add File: {name}", "+x") == (
        f"Failed to write file {path}: {refused}"
    )
    onto = refusal(tmp_path, "*** Update File: f", f"*** Move to: {name}", "-1", "+2")
    assert onto == f"Failed to write file {path}: {refused}"
    if name != "device":
        assert refusal(tmp_path, f"*** Delete File: {name}") == (
            f"Failed to delete file {path}: {refused}"
        )
    assert path.lstat() == before


def test_ascii_lines_of_a_file_in_another_encoding_can_be_changed(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"caf\xe9\nold\n\xff")
    apply(tmp_path, "*** Update File: f", "-old", "+new")
    assert (tmp_path / "f").read_bytes() == b"caf\xe9\nnew\n\xff\n"


def test_permission_bits_stay_and_move_along(tmp_path: Path):
    for name in ("run", "go", "target"):
        (tmp_path / name).write_text("a\n", encoding="utf-8")
    (tmp_path / "run").chmod(0o751)
    (tmp_path / "go").chmod(0o755)
    (tmp_path / "target").chmod(0o600)
    apply(
        tmp_path,
        *(
            "*** Update File: run",
            "-a",
            "+b",
            "*** Update File: go",
            "*** Move to: target",
            "-a",
            "+c",
        ),
    )
    assert (mode(tmp_path / "run"), mode(tmp_path / "target")) == (0o751, 0o755)
    assert tree(tmp_path) == {"run": b"b\n", "target": b"c\n"}


def test_a_file_moved_onto_itself_stays(tmp_path: Path):
    # Codex deletes it.
    (tmp_path / "a").write_text("1\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("a")
    apply(tmp_path, "*** Update File: a", "*** Move to: ./a", "-1", "+2")
    apply(tmp_path, "*** Update File: a", "*** Move to: link", "-2", "+3")
    assert tree(tmp_path) == {"a": b"3\n", "link": b"a"}


def test_links_are_followed_but_for_removal(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_text("1\n", encoding="utf-8")
    (tmp_path / "f").symlink_to("real/f")
    (tmp_path / "g").symlink_to("real/f")
    (tmp_path / "dangling").symlink_to("real/made")
    (tmp_path / "gone").symlink_to("nowhere")
    apply(
        tmp_path,
        *(
            "*** Update File: f",
            "-1",
            "+2",
            "*** Delete File: f",
            "*** Add File: dangling",
            "+x",
        ),
        *("*** Delete File: gone", "*** Update File: g", "*** Move to: h", "-2", "+3"),
    )
    assert tree(tmp_path) == {
        "dangling": b"real/made",
        "h": b"3\n",
        "real": None,
        "real/f": b"2\n",
        "real/made": b"x\n",
    }


def test_hard_links_stay_together(tmp_path: Path):
    (tmp_path / "a").write_text("a longer line\n", encoding="utf-8")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    apply(tmp_path, "*** Update File: a", "-a longer line", "+2")
    assert tree(tmp_path) == {"a": b"2\n", "b": b"2\n"}
    assert (tmp_path / "a").samefile(tmp_path / "b")


# As Codex 0.171 has them, but for a third link, which keeps its contents here.
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("*** Update File: a", "*** Move to: b", "-1", "+2"), {"b": b"2\n"}),
        (("*** Update File: b", "*** Move to: a", "-1", "+2"), {"a": b"2\n"}),
        (("*** Update File: a", "-1", "+2", "*** Delete File: b"), {"a": b"2\n"}),
        (("*** Delete File: b", "*** Update File: a", "-1", "+2"), {"a": b"2\n"}),
        (
            ("*** Update File: a", "-1", "+2", "*** Update File: b", "-1", "+3"),
            {"a": b"2\n", "b": b"3\n"},
        ),
        (
            (
                "*** Update File: a",
                "*** Move to: c/d",
                "-1",
                "+2",
                "*** Update File: b",
                "-1",
                "+3",
            ),
            {"b": b"3\n", "c": None, "c/d": b"2\n"},
        ),
    ],
)
def test_two_links_to_one_file_change_in_one_patch(
    tmp_path: Path, lines: tuple[str, ...], expected: dict[str, bytes | None]
):
    (tmp_path / "a").write_text("1\n", encoding="utf-8")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    (tmp_path / "other").hardlink_to(tmp_path / "a")
    apply(tmp_path, *lines)
    assert tree(tmp_path) == {**expected, "other": b"1\n"}


def test_a_failure_while_writing_puts_everything_back(tmp_path: Path):
    for name in ("a", "b", "hard", "zapped"):
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    (tmp_path / "hard").chmod(0o640)
    (tmp_path / "linked").hardlink_to(tmp_path / "hard")
    planned = plan(
        tmp_path,
        *(
            "*** Add File: new/deep/x",
            "+x",
            "*** Update File: a",
            "-1",
            "+2",
            "*** Delete File: b",
        ),
        *("*** Add File: b/below", "+x", "*** Update File: hard", "-1", "+2"),
        *("*** Add File: dir/y", "+y", "*** Delete File: zapped"),
    )
    (tmp_path / "dir").write_text("in the way", encoding="utf-8")
    before = tree(tmp_path)
    with pytest.raises(
        PatchError, match=f"^Failed to write file {tmp_path}/dir/y: "
    ) as caught:
        planned.commit()
    assert caught.value.kind == "file"
    assert tree(tmp_path) == before
    assert mode(tmp_path / "hard") == 0o640


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path):
    (tmp_path / "a").write_text("1\n", encoding="utf-8")
    changed, appeared = (
        plan(tmp_path, "*** Update File: a", "-1", "+2"),
        plan(tmp_path, "*** Add File: b", "+x"),
    )
    (tmp_path / "a").write_text("mine\n", encoding="utf-8")
    (tmp_path / "b").write_text("mine\n", encoding="utf-8")
    for planned, name in ((changed, "a"), (appeared, "b")):
        with pytest.raises(PatchError, match=rf"/{name}: it has changed since"):
            planned.commit()
    assert tree(tmp_path) == {"a": b"mine\n", "b": b"mine\n"}


def test_changes_say_what_becomes_of_each_file(tmp_path: Path):
    for name in ("over", "mod", "old", "target", "gone"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
    planned = plan(
        tmp_path,
        *(
            "*** Add File: over",
            "+1",
            "*** Add File: tmp",
            "+2",
            "*** Delete File: tmp",
        ),
        *("*** Update File: mod", "-mod", "+3", "*** Update File: mod", "-3", "+4"),
        *(
            "*** Update File: old",
            "*** Move to: target",
            "-old",
            "+5",
            "*** Delete File: gone",
        ),
    )
    mode = (tmp_path / "mod").stat().st_mode
    target = tmp_path / "target"
    assert planned.changes == [
        PatchedFile(
            tmp_path / "over", "add", None, b"over\n", b"1\n", None, mode, mode
        ),
        PatchedFile(
            tmp_path / "mod", "update", None, b"mod\n", b"4\n", None, mode, mode
        ),
        PatchedFile(
            path=tmp_path / "old",
            kind="update",
            move_to=target,
            old=b"old\n",
            new=b"5\n",
            replaced=b"target\n",
            old_mode=mode,
            new_mode=mode,
            replaced_mode=mode,
        ),
        PatchedFile(tmp_path / "gone", "delete", None, b"gone\n", None, None, mode),
    ]


def test_notes_come_with_the_plan(tmp_path: Path):
    (tmp_path / "a").write_text("x\nx\n", encoding="utf-8")
    assert plan(tmp_path, "*** Update File: a", "-x").notes == (
        f"{tmp_path}/a: hunk 1 was applied at line 1 (it also fits at 2).",
    )


@pytest.mark.parametrize(
    "path",
    [
        *("../outside", "{above}/outside", "out/x", "link"),
        *(
            ".git",
            ".git/config",
            ".GIT/x",
            ".codex",
            ".claude/agents/x.md",
            ".AWS/x",
            "sub/.agents/x",
        ),
        *(
            "sub/.git",
            "vendor/lib/.git/hooks/pre-commit",
            "vendor/lib/.Git/config",
            "new/.git/x",
        ),
        # Names that NTFS and HFS+ take for `.git`, which git refuses too: is_ntfs_dotgit and is_hfs_dotgit.
        *(
            "sub/.git. ./x",
            "git~1/x",
            "sub/GIT~1/x",
            ".git::$INDEX_ALLOCATION/x",
            "a/.git\\x",
        ),
        *(
            "sub/.g\u200cit/x",
            "\ufeff.git/x",
            ".codex./x",
            "CLAUDE~1/x",
            ".agents:x",
            ".\u202eaws/x",
        ),
    ],
)
def test_writing_elsewhere_is_refused(tmp_path: Path, path: str):
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "out").symlink_to(tmp_path)
    (root / "link").symlink_to(tmp_path / "target")
    writable = writable_under([root, root / "sub"])
    added = f"*** Add File: {path.format(above=tmp_path)}"
    with pytest.raises(PatchError) as caught:
        plan_patch(enveloped("*** Add File: ok", added), root).checked(writable)
    assert (caught.value.kind, str(caught.value)) == (
        "refused",
        "patch rejected: writing outside of the project; rejected by user approval settings",
    )


def test_a_protected_file_is_known_by_another_name_too(tmp_path: Path):
    # As `GIT~1` is on some file systems.
    (tmp_path / "metadata").mkdir()
    (tmp_path / ".git").symlink_to("metadata")
    with pytest.raises(PatchError, match=r"^patch rejected"):
        plan_patch(enveloped("*** Add File: metadata/x"), tmp_path).checked(
            writable_under([tmp_path])
        )


def test_writing_below_a_root_is_allowed(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    (tmp_path / "real" / "vendor" / ".git").mkdir(parents=True)
    paths = [
        *(
            "x/y",
            "sub/.gitignore",
            f"{tmp_path}/real/z",
            "vendor/z",
            "vendor/.github/x",
            "x/git",
        ),
        *("vendor/.codex/x", "x/.agents/x", "x/.aws", "x/.claude/x"),
        *(".gitx", "x/.git x", "git~2", "x/git~1x", ".gi t", "x/.g\u200bit"),
    ]
    text = enveloped(*[f"*** Add File: {path}" for path in paths])
    planned = plan_patch(text, tmp_path / "root").checked(
        writable_under([tmp_path / "root"])
    )
    assert len(planned.changes) == len(paths)


def test_the_file_that_a_move_leaves_must_be_writable_too(tmp_path: Path):
    (tmp_path / "root").mkdir()
    (tmp_path / "a").write_text("x\n", encoding="utf-8")
    with pytest.raises(PatchError, match=r"^patch rejected"):
        plan_patch(
            enveloped("*** Update File: ../a", "*** Move to: b", "-x", "+y"),
            tmp_path / "root",
        ).checked(writable_under([tmp_path / "root"]))


def test_a_directory_that_becomes_a_link_is_not_read_through(tmp_path: Path):
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    for folder in ("root/sub", "elsewhere"):
        (tmp_path / folder / "f").write_text("secret\n", encoding="utf-8")
    asked: list[str] = []

    def readable(path: str) -> bool:
        asked.append(path)
        # As a command does that runs at the same time.
        (tmp_path / "root" / "sub").rename(tmp_path / "root" / "aside")
        (tmp_path / "root" / "sub").symlink_to("../elsewhere")
        return True

    with pytest.raises(PatchError) as caught:
        plan_patch(
            enveloped("*** Update File: sub/f", "-other"),
            tmp_path / "root",
            readable=readable,
        )
    assert asked == [f"{tmp_path}/root/sub/f"]
    assert "secret" not in str(caught.value)
