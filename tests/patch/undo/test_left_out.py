"""Turns with files that are not kept, because they were ignored when the turn began, or large: undo deletes none.

Tests `patch/undo/copies/births.py`, `patch/undo/copies/earlier.py` and
`patch/undo/copies/folders.py`.
"""

import os
import subprocess
from pathlib import Path

import pytest

from codex_py.patch.files.journal import Journal
from codex_py.patch.undo.copies import folders, snapshots
from codex_py.patch.undo.copies.births import born_ns
from codex_py.patch.undo.entries import Entries
from codex_py.patch.undo.plan import EditedSince, UndoPlan, plan_undo
from codex_py.patch.undo.recorder import TurnRecorder
from codex_py.protocol.patched_file import PatchedFile
from tests.support.patching import patch, tree

GIT = ("git", "-c", "user.email=a@example.com", "-c", "user.name=a")


@pytest.fixture(params=["in a repository", "without git"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    os.umask(0o022)
    root = tmp_path / "work"
    (root / "out").mkdir(parents=True)
    (root / "out/d").write_text("data\n", encoding="utf-8")
    (root / "a").write_text("tracked\n", encoding="utf-8")
    (root / ".gitignore").write_text(
        "out/\n*.db\n.env\nnode_modules/\n", encoding="utf-8"
    )
    if request.param == "in a repository":
        for words in ("init -qb main", "add -A", "commit -qm 1"):
            subprocess.run([*GIT, *words.split()], cwd=root, check=True)
    return root


def recorder(root: Path) -> TurnRecorder:
    return TurnRecorder(root.parent / "home", root, os.environ, "one")


def journal(root: Path) -> Journal:
    return Journal(root.parent / "home", root)


def run(turn: TurnRecorder, root: Path, command: str) -> None:
    turn.copy()
    turn.will_run(is_confined=False)
    turn.begin_life()
    subprocess.run(command, shell=True, cwd=root, check=True)
    turn.end_life()


def turn_of(root: Path, *commands: str) -> str:
    """Returns the diff of the turn."""
    turn = recorder(root)
    for command in commands:
        run(turn, root, command)
    return turn.end_turn(1, is_new=True)


def named(root: Path, plan: UndoPlan) -> list[str]:
    return sorted(os.path.relpath(path, root) for path in plan.unkept)


def files(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        name: node for name, node in tree(root).items() if not name.startswith(".git/")
    }


UNIGNORING = {
    "the rules are removed": ("rm .gitignore",),
    "they are written anew": ("echo '*.tmp' > .gitignore",),
    "a rule is removed": ("sed -i /out/d .gitignore",),
    "the folder is taken in again": ("printf '!out/\\n' >> .gitignore",),
    "they are removed, then something is written": ("rm .gitignore", "echo 2 >> a"),
    "something is written, then they are removed": ("echo 2 >> a", "rm .gitignore"),
    "they are moved into a folder": ("mkdir sub; mv .gitignore sub/",),
    "they are removed, and come back": (
        "rm .gitignore",
        "printf 'out/\\n*.db\\n' > .gitignore",
    ),
    "a folder's own rules take it in": (
        "printf '!*\\n' > out/.gitignore; rm .gitignore",
    ),
}


@pytest.mark.parametrize("commands", UNIGNORING.values(), ids=UNIGNORING)
def test_files_that_were_ignored_when_the_turn_began_are_no_change_of_it(
    root: Path, commands: tuple[str, ...]
) -> None:
    (root / "x.db").write_bytes(b"d" * 2_000_000)
    before = files(root)
    diff = turn_of(root, *commands)
    assert "out/d" not in diff
    assert "x.db" not in diff
    after = files(root)
    plan = plan_undo(journal(root))
    assert plan.doubts == []
    assert named(root, plan) in ([], ["out"])
    plan.commit()
    assert {
        name: node for name, node in files(root).items() if name != "out/.gitignore"
    } == before
    plan_undo(journal(root), Entries(journal(root)).newest_undo()).commit()
    assert files(root) == after


def test_a_patch_that_takes_a_rule_out_lets_the_ignored_be(root: Path) -> None:
    turn = recorder(root)
    run(turn, root, "echo 2 >> a")
    old = (root / ".gitignore").read_bytes()
    turn.begin_life()
    done = patch(journal(root), "*** Update File: .gitignore", "@@", "-out/", " *.db")
    turn.end_life()
    new = (root / ".gitignore").read_bytes()
    turn.patched([PatchedFile.of(root / ".gitignore", old, new)], done.number)
    assert "out/d" not in turn.end_turn(1, is_new=True)
    plan_undo(journal(root)).commit()
    assert (root / "out/d").exists()
    assert (root / ".gitignore").read_bytes() == old


def test_of_many_ignored_files_none_is_deleted_by_an_undo_of_several_turns(
    root: Path,
) -> None:
    for number in range(20):
        (root / f"out/{number}").write_bytes(os.urandom(1000))
    before = files(root)
    turn = recorder(root)
    for number, command in enumerate(("rm .gitignore", "echo 2 >> a", "echo 3 > b"), 1):
        run(turn, root, command)
        turn.end_turn(number, is_new=True)
    # From the second turn on, nothing is ignored any more, and all of it is kept.
    run(turn, root, "rm -r out")
    turn.end_turn(4, is_new=True)
    first, *others = Entries(journal(root)).turns_to(1)
    plan_undo(journal(root), first, others=others).commit()
    assert files(root) == before


def test_a_checkout_or_a_stash_without_the_rules_leaves_the_ignored_alone(
    root: Path,
) -> None:
    if not (root / ".git").exists():
        pytest.skip("needs a repository")
    for words in (
        "checkout -qb bare",
        "rm -q .gitignore",
        "commit -qm 2",
        "checkout -q main",
    ):
        subprocess.run([*GIT, *words.split()], cwd=root, check=True)
    before = files(root)
    assert "out/d" not in turn_of(root, "git checkout -q bare")
    plan_undo(journal(root)).commit()
    assert files(root) == before


MOVED = {
    "moved": "mv out results",
    "moved into a folder": "mkdir sub; mv out/d sub/",
    "a file moved": "mv out/d d",
    "a file moved and appended to": "mv out/d d; echo more >> d",
    "a file moved over another": "mv -f out/d a",
    "copied as links": "cp -al out results; rm -r out",
    "copied": "cp -r out results; rm -r out",
    "copied with its times": "cp -a out results; rm -r out",
    "a file copied over another": "cat out/d > a; rm out/d",
    "copied, and changed": "cp out/d d; echo other > out/d",
    "a link to it, and removed": "ln out/d d; rm out/d",
    "moved twice": "mv out results; mv results sub",
    "moved, and no more ignored": "mv out results; rm .gitignore",
    "a large ignored file": "mv x.db x.data",
    "a large ignored file copied": "cp x.db x.data; rm x.db",
}


@pytest.mark.parametrize("command", MOVED.values(), ids=MOVED)
def test_the_last_copy_of_what_is_not_kept_is_not_deleted(
    root: Path, command: str
) -> None:
    (root / "x.db").write_bytes(b"d" * 2_000_000)
    turn_of(root, command)
    after = files(root)
    with pytest.raises(
        EditedSince, match="may be the last copy of what was there before"
    ):
        plan_undo(journal(root))
    assert files(root) == after
    # Who insists gets it, and can have it back.
    plan_undo(journal(root), force=True).commit()
    plan_undo(journal(root), Entries(journal(root)).newest_undo()).commit()
    assert files(root) == after


LED_BACK = {
    "the folder": "mv out real; ln -s real out",
    "the folder, by a whole path": 'mv out real; ln -s "$PWD/real" out',
    "the folder, by two links": "mv out real; ln -s real via; ln -s via out",
    "the folder, into another one": "mkdir web; mv out web/real; ln -s web/real out",
    "a folder in it": "mv out/in real; ln -s ../real out/in; rm out/d",
    "the folder, copied and removed": "cp -r out real; rm -r out; ln -s real out",
    "the folder, each file a link": "cp -al out real; rm -r out; ln -s real out",
}


@pytest.mark.parametrize("command", LED_BACK.values(), ids=LED_BACK)
def test_a_linked_folder_that_leads_to_the_last_copy_is_no_second_one(
    root: Path, command: str
) -> None:
    (root / "out/in").mkdir()
    (root / "out/in/e").write_text("more data\n", encoding="utf-8")
    turn_of(root, command)
    after = files(root)
    with pytest.raises(
        EditedSince, match="may be the last copy of what was there before"
    ):
        plan_undo(journal(root))
    assert files(root) == after


def test_a_linked_folder_that_leads_to_another_copy_has_the_contents(
    root: Path,
) -> None:
    elsewhere = root.parent / "elsewhere"
    turn_of(root, f"cp -r out {elsewhere}; mv out real; ln -s {elsewhere} out")
    plan_undo(journal(root)).commit()
    assert not (root / "real").exists()
    assert (root / "out/d").read_text(encoding="utf-8") == "data\n"


COPIED = {
    "copied": "cp -r out results",
    "linked": "cp -al out results",
    "copied over a file": "cp out/d a",
    "linked over a file": "ln -f out/d a",
    "copied, and copied back": "cp out/d d; rm out/d; cp d out/d",
    "another of this size made": "echo dato > d",
}


@pytest.mark.parametrize("command", COPIED.values(), ids=COPIED)
def test_a_copy_is_deleted_while_the_contents_are_where_they_were(
    root: Path, command: str
) -> None:
    before = files(root)
    turn_of(root, command)
    plan_undo(journal(root)).commit()
    assert files(root) == before


def test_a_copy_is_the_last_one_once_the_other_was_removed_later(root: Path) -> None:
    turn_of(root, "cp out/d d")
    turn_of(root, "rm -r out")
    with pytest.raises(EditedSince, match="last copy"):
        plan_undo(journal(root))


def test_an_edited_file_that_was_moved_out_of_an_ignored_folder_is_not_deleted(
    root: Path,
) -> None:
    turn = recorder(root)
    run(turn, root, "mv out/d d")
    turn.copy()
    turn.begin_life()
    done = patch(journal(root), "*** Update File: d", "@@", "-data", "+edited")
    turn.end_life()
    turn.patched([PatchedFile.of(root / "d", b"data\n", b"edited\n")], done.number)
    turn.end_turn(1, is_new=True)
    with pytest.raises(EditedSince, match="last copy"):
        plan_undo(journal(root))


def test_a_moved_folder_is_brought_back_and_what_is_ignored_in_it_is_named(
    root: Path,
) -> None:
    (root / "app/node_modules/x").mkdir(parents=True)
    for name, text in (
        ("main.py", "1\n"),
        (".env", "key\n"),
        ("node_modules/x/i", "i\n"),
    ):
        (root / "app" / name).write_text(text, encoding="utf-8")
    turn_of(root, "mv app web")
    plan = plan_undo(journal(root))
    assert named(root, plan) == ["app/node_modules", "web/node_modules"]
    plan.commit()
    found = [name for name in files(root) if name.startswith(("app/", "web/"))]
    assert found == [
        "app/.env",
        "app/main.py",
        "web/node_modules",
        "web/node_modules/x",
        "web/node_modules/x/i",
    ]


def test_ignored_files_in_new_folders_and_inner_repositories_are_not_taken_for_new(
    root: Path,
) -> None:
    for folder in ("new/deep", "inner"):
        (root / folder).mkdir(parents=True)
        (root / folder / "x.db").write_text("d\n", encoding="utf-8")
    (root / "new/a").touch()
    subprocess.run([*GIT, "init", "-q", "inner"], cwd=root, check=True)
    (root / "inner/.gitignore").write_text("*.db\ncache\n", encoding="utf-8")
    (root / "inner/cache").mkdir()
    (root / "inner/cache/c").write_text("c\n", encoding="utf-8")
    before = files(root)
    turn_of(root, "echo 1 > b", "echo 2 > b", "rm inner/.gitignore .gitignore")
    plan_undo(journal(root)).commit()
    assert files(root) == before


@pytest.mark.parametrize(
    "command", ["rm .gitignore", "truncate -s 10 large", "echo small > large"]
)
def test_files_that_could_not_be_kept_are_left_alone_even_if_now_they_could(
    root: Path, command: str
) -> None:
    (root / "large").write_bytes(b"l" * (11 * 1024**2))
    turn_of(root, command, "echo 2 >> a")
    size = (root / "large").stat().st_size
    plan_undo(journal(root)).commit()
    assert (root / "large").stat().st_size == size
    assert (root / "out/d").exists()


def test_a_file_among_more_than_are_looked_at_is_known_by_its_age(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if born_ns(root / "a") is None:
        pytest.skip("the file system does not tell when a file was made")
    for module in (folders, snapshots):
        monkeypatch.setattr(module, "MAX_LOOKED_AT", 3)
    for number in range(10):
        (root / f"out/{number}").write_text(f"{number} of many\n", encoding="utf-8")
    turn_of(root, "mv out results")
    with pytest.raises(EditedSince, match="last copy"):
        plan_undo(journal(root))


def test_a_new_file_may_get_the_number_of_a_removed_one(root: Path) -> None:
    if born_ns(root / "a") is None:
        pytest.skip("the file system does not tell when a file was made")
    turn_of(root, "rm -r out; for i in 1 2 3 4 5; do echo new file > new$i; done")
    plan_undo(journal(root)).commit()
    assert not list(root.glob("new*"))


NEWLY_IGNORED = {
    "at once": (
        "mkdir -p gen/in; echo 1 > gen/in/x; ln -s x gen/in/l; echo gen/ >> .gitignore",
    ),
    "later": ("mkdir -p gen/in; echo 1 > gen/in/x", "echo gen/ >> .gitignore"),
    "before": ("echo gen >> .gitignore", "mkdir -p gen; echo 1 > gen/x"),
    "by rules of its own": ("mkdir -p gen; echo 1 > gen/x; echo '*' > gen/.gitignore",),
    "by new rules": (
        "rm .gitignore",
        "mkdir gen; echo 1 > gen/x; echo /gen > .gitignore",
    ),
}


@pytest.mark.parametrize("commands", NEWLY_IGNORED.values(), ids=NEWLY_IGNORED)
def test_files_that_the_turn_made_and_then_ignored_are_undone(
    root: Path, commands: tuple[str, ...]
) -> None:
    before = files(root)
    turn_of(root, *commands)
    after = files(root)
    plan_undo(journal(root)).commit()
    assert files(root) == before
    plan_undo(journal(root), Entries(journal(root)).newest_undo()).commit()
    assert files(root) == after


def test_of_a_folder_that_the_turn_ignores_the_users_data_is_not_deleted(
    root: Path,
) -> None:
    turn_of(root, "mv out gen; echo /gen/ > .gitignore")
    with pytest.raises(EditedSince, match="last copy"):
        plan_undo(journal(root))
    assert (root / "gen/d").exists()


def test_an_undo_changes_no_other_link_to_a_file(root: Path) -> None:
    (root / "b").write_text("other\n", encoding="utf-8")
    before = files(root)
    turn_of(root, "ln -f b a")
    plan_undo(journal(root)).commit()
    assert files(root) == before


def test_a_kept_file_that_was_moved_under_the_name_of_a_large_one_is_not_lost(
    root: Path,
) -> None:
    (root / "large").write_bytes(b"l" * (11 * 1024**2))
    turn_of(root, "mv a b; cp large a")
    with pytest.raises(EditedSince, match="last copy"):
        plan_undo(journal(root))
    assert (root / "b").read_text(encoding="utf-8") == "tracked\n"


@pytest.mark.parametrize(
    "command", ["mv out results", "cp -r out results; rm -r out", "cp -r out results"]
)
def test_a_record_of_many_moved_files_is_no_larger_than_their_number_asks_for(
    root: Path, command: str
) -> None:
    count = 200
    for number in range(count):
        (root / "out" / f"f{number}").write_text(f"{number:06}\n", encoding="utf-8")
    turn_of(root, command)
    (entry,) = Entries(journal(root)).in_force
    assert entry.turn is not None
    places = [place for each in entry.turn.earlier.values() for place in each]
    assert len(entry.turn.earlier) > count - 2
    assert len(places) <= 2 * len(entry.turn.earlier)


def test_a_refusal_has_all_of_its_reasons(root: Path) -> None:
    turn_of(root, "mv out results; echo more >> a")
    with (root / "a").open("a", encoding="utf-8") as file:
        file.write("by the user\n")
    with pytest.raises(EditedSince) as caught:
        plan_undo(journal(root))
    text = str(caught.value)
    assert f"edited since: {root / 'a'}; besides, {root / 'results/d'} may be" in text
