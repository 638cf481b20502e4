"""Whatever git writes as a diff is applied as `git apply` applies it: the same tree, or refused as well."""

import os
import random
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.unified.plan import plan_unified
from tests.patch.trees import (
    DIRECTORY,
    Node,
    Tree,
    commit_tree,
    entries,
    git,
    write_nodes,
)
from tests.support.searches import share

CASES = int(os.environ.get("PATCH_CASES", "60"))
NAMES = [
    *("a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b", "p/q/r/s", "p/q/t"),
    *("a b/c b/d", "x y", "é", 'q"\\', "t\tt", "n\nn"),
]
TARGETS = [b"a", b"d/a", b"d", b"nowhere", b"../out", b"/etc/passwd", b"x\ny", b"\xff"]
LINES = [
    *(b"\n", b"a\n", b"b\n", b"c d\n", b"a\r\n", b"\r\n"),
    *(b"\xff\n", b"-- x\n", b"\\ x\n", b"\0\n"),
]
# Of links that the diff removes.
FALSE_ALARM = re.compile(r"beyond a symbolic link|Too many levels of symbolic links")
OPTIONS = [["-M", "-C", "--find-copies-harder"], ["-M"], ["--no-renames"], ["-B", "-M"]]


def a_file(rng: random.Random) -> Node:
    lines = [rng.choice(LINES) for _ in range(rng.choice([0, 1, 3, 8, 20]))]
    end = rng.choice([b"", b"", b"", b"end"])
    return Node(b"".join(lines) + end, is_executable=rng.random() < 0.2)


def a_node(rng: random.Random) -> Node:
    return (
        Node(rng.choice(TARGETS), is_link=True) if rng.random() < 0.25 else a_file(rng)
    )


def put(tree: Tree, name: str, node: Node) -> None:
    """Put an entry, and take away what is in its place as a directory, or above it as a file."""
    for other in list(tree):
        if other.startswith(f"{name}/") or name.startswith(f"{other}/"):
            del tree[other]
    tree[name] = node


def edited(rng: random.Random, node: Node) -> Node:
    match rng.randrange(4):
        case 0:
            return replace(
                node, is_executable=not node.is_executable and not node.is_link
            )
        case 1:
            return a_node(rng)
        case _ if node.is_link:
            return replace(node, data=rng.choice(TARGETS))
        case _:
            lines = node.data.splitlines(keepends=True)
            at = rng.randint(0, len(lines))
            lines[at : at + rng.randint(0, 2)] = [rng.choice(LINES)] * rng.randint(0, 2)
            return replace(node, data=b"".join(lines))


def changed(rng: random.Random, old: Tree) -> Tree:
    new = dict(old)
    for _ in range(rng.randint(1, 5)):
        name = rng.choice(list(new) or ["a"])
        other = rng.choice(NAMES)
        match rng.randrange(6):
            case 0:
                new.pop(name, None)
            case 1 if name in new:
                put(new, other, new.pop(name))
            case 2 if name in new:
                put(new, other, new[name])
            case 3:
                put(new, other, a_node(rng))
            case _ if name in new:
                new[name] = edited(rng, new[name])
            case _:
                pass
    return new


def disturb(rng: random.Random, root: Path) -> None:
    """Do something to a tree that the diff knows nothing of."""
    there = entries(root)
    name = rng.choice([*there, rng.choice(NAMES)])
    path = root / name
    if any(
        stat.S_ISLNK(parent.lstat().st_mode)
        for parent in path.parents
        if os.path.lexists(parent)
    ):
        return
    node = there.get(name)
    match rng.randrange(4):
        case 0:
            directory = path if name in there and node is DIRECTORY else path.parent
            if directory.is_dir():
                (directory / "untracked").write_bytes(b"x\n")
        case 1:
            directory = path if name in there and node is DIRECTORY else path.parent
            if directory.is_dir():
                (directory / "empty").mkdir()
        case 2 if node is not DIRECTORY and path.parent.is_dir():
            path.unlink(missing_ok=True)
            if rng.random() < 0.5:
                write_nodes(root, {name: a_node(rng)})
        case 3 if not os.path.lexists(path) and all(
            p.is_dir() or not p.exists() for p in path.parents
        ):
            path.mkdir(parents=True)
        case _:
            pass


def applied_by_git(root: Path, diff: bytes, *, reverse: bool) -> str | None:
    """None, or why it is refused."""
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *["-R"] * reverse, "-"],
        cwd=root,
        input=diff,
        capture_output=True,
        env={
            "PATH": os.environ["PATH"],
            "GIT_CEILING_DIRECTORIES": str(root.parent),
            "LC_ALL": "C",
        },
        check=False,
    )
    return done.stderr.decode(errors="replace") if done.returncode else None


def applied_by_us(root: Path, diff: bytes, *, reverse: bool) -> str | None:
    """None, or why it is refused."""
    before = entries(root)
    try:
        plan_unified(diff, root, strict=True, reverse=reverse).commit()
    except PatchError as error:
        assert entries(root) == before
        return str(error)
    return None


def difference(
    repository: Path,
    old: Tree,
    new: Tree,
    options: Sequence[str],
    *,
    all_binary: bool = False,
) -> bytes:
    repository.mkdir(parents=True)
    names: list[str] = []
    for tree in (old, new):
        for path in repository.iterdir():
            if path.is_dir() and not path.is_symlink() and path.name != ".git":
                shutil.rmtree(path)
            elif path.name != ".git":
                path.unlink()
        write_nodes(repository, tree)
        names.append(commit_tree(repository))
    if all_binary:
        (repository / ".git/info").mkdir(exist_ok=True)
        (repository / ".git/info/attributes").write_text("* binary\n", encoding="utf-8")
    return git(repository, "diff", "--full-index", *options, *names)


def files(there: Mapping[str, Node | None]) -> Tree:
    return {name: node for name, node in there.items() if node is not None}


@dataclass(frozen=True)
class Comparison:
    diff: bytes
    before: Mapping[str, Node | None]
    wanted: Tree | None
    """The tree that should come out, where nothing was done to the other one."""
    by_git: str | None
    """Why it is refused."""
    by_us: str | None
    git_tree: Mapping[str, Node | None]
    our_tree: Mapping[str, Node | None]

    @property
    def agrees(self) -> bool:
        if self.our_tree == self.git_tree and (self.by_us is None) == (
            self.by_git is None
        ):
            return True
        if self.wanted is not None and (
            self.by_git or files(self.git_tree) != self.wanted
        ):
            # git cannot reverse all of its own copies, nor always tell that a link goes.
            return self.by_us is not None or files(self.our_tree) == self.wanted
        if self.by_git is None:
            return False
        return self.by_us is not None or bool(FALSE_ALARM.search(self.by_git))


def compared(seed: int, root: Path, form: str) -> Comparison | None:
    rng = random.Random(seed)
    old: Tree = {}
    for _ in range(rng.randint(0, 8)):
        put(old, rng.choice(NAMES), a_node(rng))
    new = changed(rng, old)
    options = [*rng.choice(OPTIONS), form]
    diff = difference(root / "repository", old, new, options, all_binary=seed % 2 > 0)
    if not diff:
        return None
    reverse = rng.random() < 0.3 and b"\ncopy from " not in diff
    wanted: Tree | None = old if reverse else new
    theirs, ours = root / "theirs", root / "ours"
    write_nodes(theirs, new if reverse else old)
    if rng.random() < 0.3:
        disturb(rng, theirs)
        wanted = None
    shutil.copytree(theirs, ours, symlinks=True)
    before = entries(theirs)
    by_git = applied_by_git(theirs, diff, reverse=reverse)
    by_us = applied_by_us(ours, diff, reverse=reverse)
    return Comparison(
        diff, before, wanted, by_git, by_us, entries(theirs), entries(ours)
    )


@pytest.mark.parametrize("form", ["--text", "--binary"])
def test_diffs_of_git_are_applied_as_git_applies_them(
    tmp_path: Path, form: str
) -> None:
    wrong: list[int] = []
    for seed in range(share(CASES)):
        comparison = compared(seed, tmp_path / f"{seed}", form)
        if comparison is not None and not comparison.agrees:
            wrong.append(seed)
        shutil.rmtree(tmp_path / f"{seed}")
    assert wrong == []
