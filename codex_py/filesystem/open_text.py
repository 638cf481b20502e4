"""Compares the text of a file in an editor, which may not be saved, with the file on disk."""

from typing import Final

MAX_BYTES: Final = 8 * 1024 * 1024
"""The size of the largest file that an editor is asked about."""
BYTE_ORDER_MARK: Final = "\ufeff".encode()
"""Editors keep it apart from the text."""


def is_text(data: bytes) -> bool:
    """True for a text in UTF-8."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_on_disk(text: str, disk: bytes) -> bytes:
    """Give an editor's text the byte order mark and the line ends of the file.

    Editors keep both apart from the text.
    """
    data = text.encode(errors="replace")
    if disk.startswith(BYTE_ORDER_MARK) and not data.startswith(BYTE_ORDER_MARK):
        data = BYTE_ORDER_MARK + data
    if b"\r" in data or b"\r\n" not in disk:
        return data
    if data == disk.replace(b"\r\n", b"\n"):
        return disk
    return data.replace(b"\n", b"\r\n")
