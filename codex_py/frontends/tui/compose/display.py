"""Shows the text in the composer: with labels for folded parts, and nothing that steers the terminal."""

import re
from bisect import bisect_right

from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.compose.attachments import Attachments
from codex_py.frontends.tui.fitting import Fragments, fit

# prompt-toolkit shows the other control characters itself, as `^[`.
_SPECIAL = re.compile(
    "[\t\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U00100000-\U0010ffff]"
)


class Display(Processor):
    """
    Args:
        placeholder: shown where there is no text.
    """

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
            label = (
                self._attachments.shown(character, before) if character >= "\U00100000" else None
            )
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
