"""Pastes and images in a text that is being written, each of which is one character there.

So they are moved over, deleted and brought back as one, whatever keys do it. `expand` gives the text for the
model, and `shown` the label of such a character on the screen, where `Display` puts it.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fitting import Fragments, fit

_FIRST, _LAST = 0x100000, 0x10FFFD
"""A plane of Unicode for private use, that no keyboard writes."""
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_LABEL = re.compile(r"\[Image #(\d+)\]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# prompt-toolkit shows the other control characters itself, as `^[`.
_SPECIAL = re.compile(
    "[\t\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U00100000-\U0010ffff]"
)

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
        """The way back. Images without a label go in front; a text that is too long to edit is folded whole."""
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


class Display(Processor):
    """Shows the labels of attachments, and the placeholder where there is no text."""

    def __init__(self, attachments: Attachments, placeholder: str) -> None:
        self._attachments = attachments
        self._placeholder = placeholder

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        document, fragments = transformation_input.document, transformation_input.fragments
        if not document.text:
            hint = fit(self._placeholder, max(1, transformation_input.width - 1))
            return Transformation([*fragments, ("class:quiet", hint)])
        line = document.lines[transformation_input.lineno]
        if _SPECIAL.search(line) is None:
            return Transformation(fragments)
        start = document.translate_row_col_to_index(transformation_input.lineno, 0)
        shown: Fragments = []
        places = [0]
        for place, fragment in enumerate(explode_text_fragments(fragments)):
            style, character = fragment[0], fragment[1]
            before = document.text[: start + place]
            label = self._attachments.shown(character, before)
            if label is not None:
                style += " class:accent"
            text = label or _plain(character)
            shown.append((style, text))
            places.append(places[-1] + len(text))
        last = len(places) - 1
        return Transformation(
            shown,
            lambda place: places[min(place, last)] + max(0, place - last),
            lambda column: min(bisect_right(places, column) - 1, last),
        )


def _plain(character: str) -> str:
    if character == "\t":
        return "    "
    return printable(character) if _SPECIAL.match(character) else character
