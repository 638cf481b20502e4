"""Reads and applies binary contents in diffs, as `git diff --binary` writes them.

A change has one half for each direction: the full contents after it, or a delta that makes them from
the contents before it. Both are deflated, and written in base 85. Format: `parse_binary` in
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
"""The bytes that any diff may unpack to, however short it is."""
_MAX_RATIO = 100
"""The limit for larger ones: unpacked bytes for each byte of the diff. Useful contents are not packed
better than this, and zeros, which are, would take seconds."""

_START = re.compile(rb"(literal|delta) (\d{0,10})\s*$")
_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""The first letter of a line says how many bytes the line stands for: `A` is 1."""
_DAMAGED = "the binary contents are damaged"


def unpacked_room(diff_bytes: int) -> int:
    """Return the number of bytes that the halves of a diff of this length may hold and make."""
    return min(MAX_UNPACKED, max(_ALWAYS_UNPACKED, diff_bytes * _MAX_RATIO))


def read_half(
    lines: Sequence[bytes],
    at: int,
    room: int,
) -> tuple[BinaryHalf, int] | None:
    """Read the half that begins at the line with this index.

    Args:
        room: the limit in bytes for its data and its result.

    Returns:
        The half, and the index of the line after it; None if no half begins there.

    Raises:
        PatchError: of kind `parse`: it is damaged, or too large.
    """
    if at >= len(lines):
        return None
    start = _START.match(lines[at])
    if start is None:
        return None
    is_delta = start[1] == b"delta"
    size = int(b"0" + start[2])
    first = at + 1
    # Decoding takes a while, so this is checked before.
    _refuse_large(size, room, first)
    packed = list[bytes]()
    for at in range(first, len(lines)):
        text = lines[at].rstrip(b"\r\n")
        if not text:
            break
        packed.append(_bytes_of(text, at + 1))
    made = 0
    unpacker = zlib.decompressobj()
    try:
        # If there is one byte more, the contents are longer than they say.
        data = unpacker.decompress(b"".join(packed), size + 1)
        if is_delta and data:
            _, made, _ = _sizes(data)
    except (zlib.error, IndexError):
        raise _damaged(first) from None
    _refuse_large(size + made, room, first)
    if len(data) != size or not unpacker.eof:
        raise _damaged(first)
    return BinaryHalf(is_delta, data, size + made), at + 1


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
    """Apply a change of binary contents. Their blob names, old and new, must be those in the diff.

    Raises:
        PatchError: of kind `match` if the change was made for other contents; of kind `parse` if it
            is damaged.
    """
    old_name = diff.old_blob or ""
    new_name = diff.new_blob or ""
    if len(old_name) not in NAME_LENGTHS or len(new_name) != len(old_name):
        raise diff.refusal(
            f"{path}: binary contents can be changed only if the `index` line has full names: "
            "`git diff --binary` writes them"
        )
    is_new = diff.operation == "add" and not old
    if not is_new and blob_name(old, len(old_name)) != old_name:
        raise PatchError(
            f"{path}: its binary contents are not those that the patch was made for",
            kind="match",
        )
    if not new_name.strip("0"):
        # The name of no blob: the file is deleted.
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
    """Decode a line: its length, and groups of five characters for four bytes."""
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
    """Read the start of a delta: the length of its old contents, the length of its new ones, and the
    index of its first command."""
    # No two lengths of real files take more bytes.
    head = delta[:20]
    old_size, at = _size(head, 0)
    new_size, at = _size(head, at)
    return old_size, new_size, at


def _size(head: bytes, at: int) -> tuple[int, int]:
    """Read a length from an index on. Returns it and the index after it.

    It has seven bits in each byte, the lowest first. The highest bit says that another byte follows.
    """
    size = 0
    shift = 0
    while True:
        byte = head[at]
        size |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            return size, at


def _made(old: bytes, delta: bytes) -> bytes:
    """Apply a delta. Raises an `IndexError` or a `ValueError` if it is damaged."""
    # A list of pieces would be large: each may be a single byte.
    made = bytearray()
    old_size, room, at = _sizes(delta)
    if old_size != len(old):
        raise ValueError
    while at < len(delta):
        command = delta[at]
        at += 1
        if command < 128:
            # The bytes that follow are new.
            start = at
            length = command
            source = delta
            at += length
        else:
            # Old bytes are copied. Seven bits say which bytes of the place and the length follow.
            numbers = [0] * 7
            for bit in range(7):
                if command >> bit & 1:
                    numbers[bit] = delta[at]
                    at += 1
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
