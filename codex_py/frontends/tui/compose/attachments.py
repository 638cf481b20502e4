"""Pastes and images in a text that is being written, each of which is one character there.

So they are moved over, deleted and brought back as one, whatever keys do it. `expand` gives the text for the
model, and `shown` what stands for such a character on the screen.
"""

import re
from collections.abc import Sequence
from pathlib import Path

_FIRST, _LAST = 0x100000, 0x10FFFD
"""A plane of Unicode for private use, that no keyboard writes."""
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_LABEL = re.compile(r"\[Image #(\d+)\]")
_SURROGATE = re.compile("[\ud800-\udfff]")

_FOLDED_LINES = 10
_FOLDED_CHARACTERS = 1_000
_MAX_WRITTEN = 20_000
"""Characters of a text that is brought back."""


def is_long(text: str) -> bool:
    """True if a paste is folded, because it is too long to look at."""
    return len(text) > _FOLDED_CHARACTERS or text.count("\n") > _FOLDED_LINES


class Attachments:
    def __init__(self) -> None:
        self._kept: list[str | Path] = []

    def mark(self, kept: str | Path) -> str:
        """The character for a text, or for the image at an absolute path."""
        if len(self._kept) > _LAST - _FIRST:
            self._kept.clear()
        self._kept.append(kept)
        return chr(_FIRST + len(self._kept) - 1)

    def clean(self, text: str) -> str:
        """A text from outside, which holds no such characters; `\\r\\n` and `\\r` are newlines."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return _MARK.sub("\ufffd", text)

    def shown(self, character: str, text_before: str) -> str | None:
        """The label of a character; None if it stands for nothing. Images count from 1 in the text."""
        match self._find(character):
            case None:
                return None
            case Path():
                return f"[Image #{len(self._images(text_before)) + 1}]"
            case text:
                return f"[Pasted {len(text):,} characters]"

    def expand(self, text: str) -> tuple[str, tuple[Path, ...]]:
        """The text with its pastes, and the images, of which `[Image #1]`, … in it are the first, …."""
        images = self._images(text)
        count = 0

        def content(match: re.Match[str]) -> str:
            nonlocal count
            kept = self._find(match[0])
            if isinstance(kept, Path):
                count += 1
                return f"[Image #{count}]"
            return kept or "\ufffd"

        # What the terminal sent and was no UTF-8 cannot be sent on.
        return _SURROGATE.sub("\ufffd", _MARK.sub(content, text)), tuple(images)

    def fold(self, text: str, images: Sequence[Path]) -> str:
        """The way back. Images without a label in the text go in front of it.

        A text that is too long to be written in is folded whole.
        """
        text = self.clean(text)
        if len(text) > _MAX_WRITTEN:
            return "".join(f"{self.mark(path)} " for path in images) + self.mark(text)
        left = {str(number): path for number, path in enumerate(images, 1)}

        def replaced(match: re.Match[str]) -> str:
            path = left.pop(match[1], None)
            return match[0] if path is None else self.mark(path)

        folded = _LABEL.sub(replaced, text) if images else text
        return "".join(f"{self.mark(path)} " for path in left.values()) + folded

    def _images(self, text: str) -> list[Path]:
        found = (self._find(match[0]) for match in _MARK.finditer(text))
        return [kept for kept in found if isinstance(kept, Path)]

    def _find(self, character: str) -> str | Path | None:
        place = ord(character) - _FIRST
        return self._kept[place] if 0 <= place < len(self._kept) else None
