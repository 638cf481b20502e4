"""Shows a line of the composer: labels, rows that end between words, a placeholder."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from prompt_toolkit.layout.processors import (
    Processor,
    Transformation,
    TransformationInput,
)
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.characters import escaped
from codex_py.frontends.tui.compose.attachments import Attachments
from codex_py.frontends.tui.first_frame import INDENT
from codex_py.frontends.tui.fitting import Fragments, fit
from codex_py.streams.terminal import printable

# prompt-toolkit shows the other control characters itself, as `^[`.
_SPECIAL = re.compile(
    "[\t\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U00100000-\U0010ffff]"
)
_LONGEST = 4_000
"""Characters of a line whose rows end between words: each frame breaks it again."""


class Display(Processor):
    """Prepares a line for the screen. `unicode`: False if the terminal can only show ASCII."""

    def __init__(
        self, attachments: Attachments, placeholder: str, *, unicode: bool = True
    ) -> None:
        self._attachments = attachments
        self._placeholder = placeholder
        self._unicode = unicode

    def apply_transformation(
        self, transformation_input: TransformationInput
    ) -> Transformation:
        document = transformation_input.document
        fragments = transformation_input.fragments
        # Each row begins with the sign of the prompt or as many blanks.
        room = transformation_input.width - len(INDENT)
        if not document.text:
            hint = fit(self._placeholder, max(1, room - 1))
            return Transformation([*fragments, ("class:quiet", hint)])
        line = document.lines[transformation_input.lineno]
        is_special = self._is_special(line)
        is_left_alone = len(line) > _LONGEST or get_cwidth(line) <= room
        if is_left_alone and not is_special:
            return Transformation(fragments)
        start = document.translate_row_col_to_index(transformation_input.lineno, 0)
        units: Fragments = []
        exploded = explode_text_fragments(fragments)
        for n, (style, character, *_) in enumerate(exploded):
            unit = (style, character)
            if is_special:
                unit = self._unit(style, character, document.text[: start + n])
            units.append(unit)
        shown, places = _between_words(units, room)
        last = len(places) - 1

        def shown_place(place: int) -> int:
            beyond = max(0, place - last)
            return places[min(place, last)] + beyond

        def place_of(shown_place: int) -> int:
            place = bisect_right(places, shown_place) - 1
            return min(max(0, place), last)

        return Transformation(shown, shown_place, place_of)

    def _is_special(self, line: str) -> bool:
        """True if a character of the line is shown as another text."""
        if _SPECIAL.search(line):
            return True
        return not self._unicode and not line.isascii()

    def _unit(
        self,
        style: str,
        character: str,
        before: str,
    ) -> tuple[str, str]:
        """The style and the text that are shown for a character."""
        label = self._attachments.shown(character, before)
        if label is not None:
            return f"{style} class:accent", label
        if character == "\t":
            return style, "    "
        if _SPECIAL.match(character):
            character = printable(character)
        if not self._unicode:
            character = escaped(character)
        return style, character


def _between_words(units: Fragments, room: int) -> tuple[Fragments, list[int]]:
    """Break the text into rows of `room` columns, between words.

    Blanks fill a row where a word has to begin the next one; blanks that do not fit are hidden.
    Returns the text to show, and the place in it of each unit and of the end of the line.

    Args:
        units: for each character that was written, the style and the text that stand for it.
    """
    shown_as = Char.display_mappings
    sizes = [get_cwidth(shown_as.get(text, text)) for _, text, *_ in units]
    words = _words([text for _, text, *_ in units], sizes)
    shown: Fragments = []
    places = [0]
    column = 0
    for (style, text, *_), size, word in zip(units, sizes, words, strict=True):
        is_character = size <= 2
        if text == " " and column == room:
            text = ""
            size = 0
        elif column + word > room >= word:
            # The word fits in a row, but not in what is left of this one.
            shown.append(("", " " * (room - column)))
            places[-1] += room - column
            column = 0
        elif column + size > room and is_character:
            column = 0
        shown.append((style, text))
        places.append(places[-1] + len(text))
        column += size
        # A label that is wider than the row is broken.
        if column > room:
            column = (column - 1) % room + 1
    return shown, places


def _words(texts: Sequence[str], sizes: Sequence[int]) -> list[int]:
    """The columns of the word that each unit begins; 0 for a unit within a word.

    Each wide character and each label is a word.
    """
    words = [0] * len(texts)
    word = 0
    for n in reversed(range(len(texts))):
        if texts[n] == " ":
            word = 0
        else:
            word += sizes[n]
        is_wide = sizes[n] > 1
        follows_word = n == 0 or sizes[n - 1] > 1 or texts[n - 1] == " "
        if is_wide or follows_word:
            words[n] = word
            word = 0
    return words
