"""Diffs between trees of git, and trees of work trees."""

import os
import random
from pathlib import Path

from codex_py.patch.git import Git, repository_git
from codex_py.patch.trees import aside, diff_between, work_tree
from codex_py.patch.unified.plan import plan_unified
from codex_py.programs import programs_outside
from tests.patch.trees import Node, Tree, commit_tree, entries, git, write_nodes


def safe_git(root: Path) -> Git:
    programs = programs_outside(root / "home", os.environ, root)
    return repository_git(programs, os.environ, root).without_filters(root)


def test_a_diff_of_all_changes_is_applied_in_both_directions(tmp_path: Path):
    rng = random.Random(3)
    data = rng.randbytes(3000)
    old: Tree = {
        "text": Node(b"a\nb\n"),
        "gone": Node(b"\0gone"),
        "binary": Node(data),
        "link": Node(b"text", is_link=True),
        "mode": Node(b"#!\0"),
        "eol": Node(b"1\r\n2"),
    }
    new: Tree = {
        "text": Node(b"a\nB\n"),
        "new é\t": Node(b"\0new"),
        "binary": Node(data + b"\xff"),
        "link": Node(b"mode", is_link=True),
        "mode": Node(b"#!\0", is_executable=True),
        "eol": Node(b"1\r\n2\r\n"),
        "folder/empty": Node(b""),
    }
    root, other = tmp_path / "root", tmp_path / "other"
    write_nodes(root, old)
    # What a configuration says of diffs counts for nothing here.
    commit_tree(root)
    for setting in ("diff.noprefix", "diff.mnemonicPrefix", "color.ui"):
        git(root, "config", setting, "always" if setting == "color.ui" else "true")
    git(root, "config", "diff.external", "false")
    safe = safe_git(root)
    with aside(safe) as apart:
        before = work_tree(apart, root)
        for name in old:
            (root / name).unlink()
        write_nodes(root, new)
        diff = diff_between(apart, root, before, work_tree(apart, root))
    write_nodes(other, old)
    plan_unified(diff, other, strict=True).commit()
    assert {k: v for k, v in entries(other).items() if v} == new
    plan_unified(diff, other, strict=True, reverse=True).commit()
    assert entries(other) == old
