"""Binary contents in diffs of git, as `git diff --binary` writes them: read, and applied.

A change has one half for each direction: the full contents, or a delta that makes them from the
other ones. Both are deflated, and written in base 85. Format: `parse_binary` in
https://github.com/git/git/blob/master/apply.c, and for deltas https://git-scm.com/docs/pack-format
("Deltified representation").
"""

import base64
import re
import zlib
from collections.abc import Sequence

from codex_py.errors import PatchError
from codex_py.patch.blobs import NAME_LENGTHS, blob_name
from codex_py.patch.unified.hunks import BinaryHalf, FileDiff

MAX_UNPACKED = 512 * 1024 * 1024
"""The limit in bytes for all halves of a diff and the results of its deltas: a few bytes can stand
for gigabytes."""
_ALWAYS_UNPACKED = 64 * 1024 * 1024
_MAX_RATIO = 100
"""Contents that are packed better than this, such as zeros, take seconds for nothing."""

_START = re.compile(rb"(literal|delta) (\d{0,10})\s*$")
_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The first letter of a line says how many bytes it stands for, from 1."""
_DAMAGED = "the binary contents are damaged"


def unpacked_room(diff_bytes: int) -> int:
    """The number of bytes that the halves of a diff of this length may hold or make."""
    return min(MAX_UNPACKED, max(_ALWAYS_UNPACKED, diff_bytes * _MAX_RATIO))


def read_half(
    lines: Sequence[bytes], at: int, room: int
) -> tuple[BinaryHalf, int] | None:
    """Read the half that begins at the index of a line. Returns it and the index after it; None if
    none begins there.

    Args:
        room: the limit in bytes for its data and its result.

    Raises:
        PatchError: of kind `parse`: it is damaged, or too large.
    """
    start = _START.match(lines[at]) if at < len(lines) else None
    if start is None:
        return None
    size = int(b"0" + start[2])
    first = at + 1
    packed = list[bytes]()
    # Checked before anything is decoded, which takes a while.
    _refuse_large(size, room, first)
    for at in range(first, len(lines)):
        text = lines[at].rstrip(b"\r\n")
        if not text:
            break
        packed.append(_bytes_of(text, at + 1))
    # One byte more would show that it is longer than it says.
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(b"".join(packed), size + 1)
        if start[1] == b"delta" and data:
            made = _sizes(data)[1]
        else:
            made = 0
    except (zlib.error, IndexError):
        raise _damaged(first) from None
    _refuse_large(size + made, room, first)
    if len(data) != size or not unpacker.eof:
        raise _damaged(first)
    return BinaryHalf(start[1] == b"delta", data, size + made), at + 1


def _refuse_large(
    size: int,
    room: int,
    line: int,
) -> None:
    if size > room:
        reason = (
            "its binary contents take too much room once they are unpacked: more than"
            f" {_ALWAYS_UNPACKED >> 20} MB, and {_MAX_RATIO} times the patch or {MAX_UNPACKED >> 20} MB"
        )
        raise PatchError(reason, kind="parse", line=line)


def patched_binary(
    diff: FileDiff,
    old: bytes,
    path: str,
) -> bytes:
    """Apply a change of binary contents, old and new with the blob names that the diff gives.

    Raises:
        PatchError: of kind `match`: the change was made for other contents. Of kind `parse`: it is
            damaged.
    """
    old_name = diff.old_blob or ""
    new_name = diff.new_blob or ""
    if len(old_name) not in NAME_LENGTHS or len(new_name) != len(old_name):
        raise diff.refusal(
            f"{path}: binary contents can be changed only if the `index` line has full names: "
            "`git diff --binary` writes them"
        )
    if (diff.operation != "add" or old) and blob_name(old, len(old_name)) != old_name:
        raise PatchError(
            f"{path}: its binary contents are not those that the patch was made for",
            kind="match",
        )
    if not new_name.strip("0"):
        return b""
    half = diff.halves[0]
    try:
        if half.is_delta:
            new = _made(old, half.data)
        else:
            new = half.data
    except (IndexError, ValueError):
        raise diff.refusal(f"{path}: {_DAMAGED}") from None
    if blob_name(new, len(new_name)) != new_name:
        raise diff.refusal(f"{path}: {_DAMAGED}")
    return new


def _bytes_of(text: bytes, line: int) -> bytes:
    length = _LENGTHS.find(text[:1]) + 1
    try:
        data = base64.b85decode(text[1:])
    except ValueError:
        raise _damaged(line) from None
    is_whole = len(text) % 5 == 1
    if not is_whole or not len(data) - 4 < length <= len(data):
        raise _damaged(line)
    return data[:length]


def _sizes(delta: bytes) -> tuple[int, int, int]:
    """The length of a delta's old contents, the length of its new ones, and the index of its first
    command."""
    sizes = [0, 0]
    at = 0
    # No length of a real file takes more bytes.
    head = delta[:20]
    for number in range(2):
        shift = 0
        while not shift or head[at - 1] > 127:
            sizes[number] |= (head[at] & 127) << shift
            shift = shift + 7
            at = at + 1
    return sizes[0], sizes[1], at


def _made(old: bytes, delta: bytes) -> bytes:
    """Apply a delta; the result is as long as it says. Raises an `IndexError` or a `ValueError` if
    it is damaged."""
    # Not a list of pieces: each may be a single byte.
    made = bytearray()
    old_size, room, at = _sizes(delta)
    if old_size != len(old):
        raise ValueError
    while at < len(delta):
        command = delta[at]
        at = at + 1
        if command < 128:
            start = at
            length = command
            source = delta
            at += length
        else:
            numbers = [0] * 7
            for bit in range(7):
                if command >> bit & 1:
                    numbers[bit] = delta[at]
                    at = at + 1
            start = int.from_bytes(numbers[:4], "little")
            length = int.from_bytes(numbers[4:], "little") or 0x10000
            source = old
        room -= length
        if not length or room < 0 or start + length > len(source):
            raise ValueError
        made += source[start : start + length]
    if room:
        raise ValueError
    return bytes(made)


def _damaged(line: int) -> PatchError:
    return PatchError(_DAMAGED, kind="parse", line=line)
