"""Recognizes characters that arrive all at once: they are pasted text, not keys.

A terminal that does not mark pastes (the Linux console, GNU screen, `tmux paste-buffer`, a serial
line) sends them as if they were typed. A Tab or an Enter in a paste must do nothing.
"""

import re
from typing import Final

BURST_S: Final = 0.12
"""Characters within this time after a burst belong to it. As in Codex."""
_LEAST: Final = 3
"""Characters. Fewer at once may be keys that were pressed while the program was busy."""
_AT_ONCE_S: Final = 0.008
"""Seconds within which nobody types two characters. As in Codex."""
_BREAK: Final = re.compile(r"[\t\r\n]")
_MAY_BE_KEY: Final = re.compile(r"[^\t\r\n]*\r|\t")


class Bursts:
    """Distinguishes bursts of characters, which are text, from keys.

    One Enter at the end of a burst of one line, or a Tab that comes alone, is held. If nothing
    follows, it is a key: people and programs that type ahead send such bursts.

    Attributes:
        is_open: True if the next characters belong to the burst.
        held: a character at the end of the burst that may be text or a key; else empty.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.held = ""
        self._is_one_line = True
        """True until an Enter or a Tab comes in this burst."""
        self._ends_in_return = False
        self._at_once = ""
        """The last characters that came at once."""

    def text_of(self, typed: str, apart_s: float) -> str | None:
        """The characters of one read as text, with line feeds; None if they are keys.

        Args:
            apart_s: the time since the read before.
        """
        if apart_s > _AT_ONCE_S:
            self._at_once = ""
        self._at_once = (self._at_once + typed)[-_LEAST:]
        if not self.is_open:
            if not self._begins(typed):
                return None
            self.is_open = True
            self._is_one_line = True
            self._ends_in_return = False
        if self.held:
            typed = self.held + typed
            self.held = ""
        elif self._ends_in_return:
            # This read brings the other half of a line's end.
            typed = typed.removeprefix("\n")
        self._ends_in_return = typed.endswith("\r")
        if self._is_one_line and _MAY_BE_KEY.fullmatch(typed):
            self.held = typed[-1]
            return typed[:-1]
        text = typed.replace("\r\n", "\n").replace("\r", "\n")
        if _BREAK.search(text):
            self._is_one_line = False
        return text

    def end(self) -> str:
        """End the burst: the next characters may be keys again.

        Returns the held character, which the caller presses as a key.
        """
        held = self.held
        self.held = ""
        self.is_open = False
        self._at_once = ""
        return held

    def release(self) -> str:
        """Give back the held character as a part of the text; the burst goes on."""
        held = self.held
        self.held = ""
        if held:
            self._is_one_line = False
        return held

    def forget_lines(self) -> None:
        """Let one Enter at the end count again, whatever lines came before."""
        self._is_one_line = True

    def _begins(self, typed: str) -> bool:
        """True if a burst begins: text follows an Enter or a Tab, or much came at once."""
        found = _BREAK.search(typed)
        if found is not None and _has_text(typed[found.end() :]):
            return True
        if len(self._at_once) < _LEAST:
            return False
        return _has_text(self._at_once + typed)


def _has_text(characters: str) -> bool:
    return any(map(str.isprintable, characters))
