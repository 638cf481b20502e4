"""Binary contents in diffs. `git apply` is the oracle."""

import base64
import os
import random
import subprocess
import zlib
from pathlib import Path

import pytest

from codex_py.errors import PatchError
from codex_py.patch.unified.binary import MAX_UNPACKED
from codex_py.patch.unified.content import ThreeWay
from codex_py.patch.unified.plan import plan_unified
from tests.patch.trees import Node, Tree, commit_tree, entries, git, write_nodes
from tests.support.searches import share

CASES = int(os.environ.get("PATCH_CASES", "30"))
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
HALF = b"literal 0\nHcmV?d00001\n\n"
NAME = "9ae9e86b7bd6cb1472d9373702d8249973da0832"
"""Of `ab`."""
HEAD = f"diff --git a/f b/f\nindex {EMPTY}..{NAME} 100644\nGIT binary patch\n".encode()


def diff_of(repository: Path, old: Tree, new: Tree, *options: str) -> bytes:
    names: list[str] = []
    for tree in (old, new):
        for path in repository.iterdir():
            if path.name != ".git":
                path.unlink()
        write_nodes(repository, tree)
        names.append(commit_tree(repository))
    return git(repository, "diff", "--binary", *options, *names)


def edited(rng: random.Random, data: bytes) -> bytes:
    at, end = sorted(rng.choices(range(len(data) + 1), k=2))
    match rng.randrange(4):
        case 0:
            return data[:at] + rng.randbytes(rng.randrange(300)) + data[at:]
        case 1:
            return data[:at] + data[end:]
        case 2:
            return data[at:] + data[:at]
        case _:
            return rng.randbytes(rng.choice([0, 1, 52, 53, 5000]))


@pytest.mark.parametrize("hash_name", ["sha1", "sha256"])
def test_contents_are_what_git_makes_of_them(tmp_path: Path, hash_name: str):
    repository, root = tmp_path / "repository", tmp_path / "root"
    repository.mkdir()
    git(repository, "init", "-q", f"--object-format={hash_name}")
    (repository / ".git/info/attributes").write_text("* binary\n", encoding="utf-8")
    rng = random.Random(hash_name)
    for _ in range(share(CASES)):
        old = {name: Node(rng.randbytes(rng.randrange(20_000))) for name in "abc"}
        new = {name: Node(edited(rng, node.data)) for name, node in old.items()}
        new["d"] = new.pop(rng.choice("abc"))
        new["a"] = Node(b"a\xffb", is_link=True)
        diff = diff_of(repository, old, new, rng.choice(["-M", "--no-renames"]))
        write_nodes(root, old)
        plan_unified(diff, root, strict=True).commit()
        assert entries(root) == new
        plan_unified(diff, root, strict=True, reverse=True).commit()
        assert entries(root) == old
        for name in old:
            (root / name).unlink()


def a_change(
    tmp_path: Path, old: bytes = b"\0old", new: bytes = b"\0new"
) -> tuple[Path, bytes]:
    (tmp_path / "repository").mkdir()
    diff = diff_of(tmp_path / "repository", {"f": Node(old)}, {"f": Node(new)})
    write_nodes(tmp_path / "root", {"f": Node(old)})
    return tmp_path / "root", diff


def test_other_contents_are_left_alone(tmp_path: Path):
    root, diff = a_change(tmp_path)
    (root / "f").write_bytes(b"\0mine")
    with pytest.raises(
        PatchError, match="not those that the patch was made for"
    ) as caught:
        plan_unified(diff, root)
    assert caught.value.kind == "match"


def test_a_merge_takes_contents_that_are_already_there(tmp_path: Path):
    root, diff = a_change(tmp_path)

    def no_blob(_: str) -> bytes | None:
        return None

    def merged(ours: bytes, _base: bytes, _theirs: bytes) -> tuple[bytes, bool]:
        return ours, True

    three_way = ThreeWay(no_blob, merged)
    (root / "f").write_bytes(b"\0new")
    plan = plan_unified(diff, root, three_way=three_way)
    assert plan.notes == (f"{root}/f: it has the new contents already.",)
    (root / "f").write_bytes(b"\0mine")
    with pytest.raises(PatchError, match="not those that the patch was made for"):
        plan_unified(diff, root, three_way=three_way)


def test_a_change_without_its_other_half_cannot_be_reversed(tmp_path: Path):
    root, diff = a_change(tmp_path)
    diff = diff[: diff.rindex(b"literal")]
    with pytest.raises(PatchError, match="not all of the binary contents") as caught:
        plan_unified(diff, root, reverse=True)
    assert caught.value.kind == "parse"
    plan_unified(diff, root).commit()
    assert entries(root) == {"f": Node(b"\0new")}


def test_short_names_are_not_enough(tmp_path: Path):
    root, diff = a_change(tmp_path)
    head, _, rest = diff.partition(b"index ")
    names, _, rest = rest.partition(b" ")
    short = b"..".join(name[:7] for name in names.split(b".."))
    with pytest.raises(PatchError, match="full names") as caught:
        plan_unified(head + b"index " + short + b" " + rest, root)
    assert caught.value.kind == "parse"


def test_damage_is_found_wherever_it_is(tmp_path: Path):
    rng = random.Random(1)
    data = rng.randbytes(600)
    root, diff = a_change(tmp_path, data, data + b"more")
    lines = diff.split(b"\n")
    begin = lines.index(b"GIT binary patch") + 1
    for number in range(begin, len(lines) - 2):
        line = lines[number]
        for damage in (
            b"",
            line[:-1],
            line[:3] + b"~~~~~" + line[8:],
            line + b"0",
            b"A" + line[1:],
        ):
            if damage == line:
                continue
            damaged = b"\n".join([*lines[:number], damage, *lines[number + 1 :]])
            by_git = subprocess.run(
                ["git", "apply", "--check", "-"], cwd=root, input=damaged, check=False
            )
            try:
                plan_unified(damaged, root)
                refused = False
            except PatchError as error:
                refused = error.kind == "parse"
            assert refused == bool(by_git.returncode), damaged


def half_of(data: bytes, kind: str = "delta", size: int | None = None) -> bytes:
    packed = zlib.compress(data, 9)
    lines = [f"{kind} {len(data) if size is None else size}\n".encode()]
    for at in range(0, len(packed), 52):
        part = packed[at : at + 52]
        padded = part + bytes(-len(part) % 4)
        lines.append(LETTERS[len(part) - 1 :][:1] + base64.b85encode(padded) + b"\n")
    return b"".join([*lines, b"\n"])


def varint(number: int) -> bytes:
    parts: list[int] = []
    while True:
        parts.append(number & 127 | (128 if number > 127 else 0))
        number >>= 7
        if not number:
            return bytes(parts)


@pytest.mark.parametrize(
    ("half", "message"),
    [
        (half_of(b"", "literal", MAX_UNPACKED + 1), "take too much room"),
        (half_of(b"", "literal", 70_000_000), "take too much room"),
        (half_of(varint(0) + varint(70_000_000)), "take too much room"),
        (half_of(varint(0) + varint(1 << 40)), "take too much room"),
        (half_of(varint(0) + varint(1 << 200)), "damaged"),
        (half_of(bytes(50_000_000), "literal", 10), "damaged"),
        (half_of(b"ab", "literal", 3), "damaged"),
        (half_of(b""), "damaged"),
        (half_of(b"\x80"), "damaged"),
        (half_of(varint(0) + varint(3) + b"\x02ab"), "damaged"),
        (half_of(varint(0) + varint(2) + b"\x04ab"), "damaged"),
        (half_of(varint(0) + varint(2) + b"\x02ab\x90\x01"), "damaged"),
        (half_of(varint(0) + varint(2) + b"\x02ab\x00"), "damaged"),
        (half_of(varint(0) + varint(2) + b"\x91\x00\x02"), "damaged"),
        (half_of(varint(1) + varint(2) + b"\x02ab"), "damaged"),
        (b"nothing\n", "not followed by contents"),
        (half_of(b"other", "literal"), "damaged"),
    ],
)
def test_the_size_that_a_half_states_is_checked(
    tmp_path: Path, half: bytes, message: str
):
    (tmp_path / "f").touch()
    with pytest.raises(PatchError, match=message) as caught:
        plan_unified(HEAD + half + HALF, tmp_path)
    assert caught.value.kind == "parse"


def test_a_delta_is_followed(tmp_path: Path):
    (tmp_path / "f").touch()
    half = half_of(varint(0) + varint(2) + b"\x02ab")
    plan_unified(HEAD + half + HALF, tmp_path).commit()
    assert (tmp_path / "f").read_bytes() == b"ab"
