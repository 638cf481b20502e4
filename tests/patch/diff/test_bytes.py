"""Diffs of contents that are not UTF-8 can be applied again."""

import json
from pathlib import Path

import pytest

from codex_py.patch.diff.turn_diff import NetChanges
from codex_py.patch.diff.writer import git_diff
from codex_py.protocol.messages import encode_json, encode_json_with_bytes
from codex_py.protocol.patched_file import PatchedFile
from tests.patch.trees import git

CONTENTS = [
    (b"caf\xe9\ntwo\n", b"caf\xe9\nTWO\n"),
    (b"one\n", b"one\nna\xefve\n"),
    (b"\xff\xfe\n", None),
    (None, b"\x80\x81\xc3\n"),
    (b"\xe2\x82\n", b"\xe2\x82\xac\n"),
    ("\ud800\n".encode(errors="surrogatepass"), b"x\n"),
    (b"a\r\n\xe9\r\n", b"a\r\n\xe8\r\n"),
    (b"\xe9 without an end", b"\xe8 without an end"),
]


@pytest.mark.parametrize(("old", "new"), CONTENTS)
def test_the_diff_of_a_turn_is_exact_through_json(
    tmp_path: Path, old: bytes | None, new: bytes | None
) -> None:
    file = PatchedFile.of(tmp_path / "a", old, new)
    changes = NetChanges()
    changes.add([file])
    line = encode_json_with_bytes({"diff": changes.diff(tmp_path)})
    line.decode()
    diff = json.loads(line)["diff"].encode(errors="surrogateescape")
    if old is not None:
        (tmp_path / "a").write_bytes(old)
    git(tmp_path, "apply", "-", stdin=diff)
    found = (tmp_path / "a").read_bytes() if (tmp_path / "a").exists() else None
    assert found == new


@pytest.mark.parametrize(("old", "new"), CONTENTS)
def test_a_diff_for_people_and_other_json_have_no_lone_surrogate(
    old: bytes | None, new: bytes | None
) -> None:
    changes = [PatchedFile.of(Path("/p/a"), old, new)]
    shown = git_diff(changes, Path("/p"))
    assert "\ufffd" in shown
    shown.encode()
    kept = git_diff(changes, Path("/p"), keeps_bytes=True)
    assert json.loads(encode_json({"diff": kept}))["diff"].isprintable() is False
    encode_json({"diff": kept}).decode()
