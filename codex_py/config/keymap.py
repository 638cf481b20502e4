"""The actions and the spelling of keys in `tui.keymap`, as Codex 0.171 has them."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Final

CONTEXTS: Final = (
    "global",
    "chat",
    "composer",
    "editor",
    "list",
    "pager",
    "approval",
    "agents",
    "vim_normal",
    "vim_operator",
    "vim_search",
    "vim_text_object",
)
UNBOUND: Final = "unbound"
"""The value for an action that has an effect here, but no keys by default."""
_MODIFIERS: Final = {"control": "ctrl", "option": "alt"}
_ORDER: Final = ("ctrl", "alt", "shift", "super")
ALIASES: Final = {
    "escape": "esc",
    "return": "enter",
    "del": "delete",
    **dict.fromkeys(("pageup", "pgup"), "page-up"),
    **dict.fromkeys(("pagedown", "pgdn"), "page-down"),
}
KEY: Final = (
    r"[!-,.-~]|f(?:[1-9]|1\d|2[0-4])|enter|tab|backspace|esc|delete|up|down|left|right|home|end"
    r"|page-up|page-down|space|minus"
)


def key_name(text: str) -> str | None:
    """Normalize the name of a key, or of keys pressed in sequence: `ctrl-t`, `leader t`.

    None if the text is not such a name.
    """
    words = text.lower().split()
    leader = words[:1] if words[:1] == ["leader"] else []
    names = [name for word in words[len(leader) :] if (name := _one(word)) is not None]
    is_whole = names and len(leader) + len(names) == len(words)
    if is_whole:
        return " ".join((*leader, *names))
    return None


def _one(word: str) -> str | None:
    held: set[str] = set()
    while (
        found := re.match(r"(ctrl|control|alt|option|shift|super)-", word)
    ) is not None:
        modifier = _MODIFIERS.get(found[1], found[1])
        if modifier in held:
            return None
        held.add(modifier)
        word = word[found.end() :]
    word = ALIASES.get(word, word)
    if re.fullmatch(KEY, word) is None:
        return None
    return "-".join([*(each for each in _ORDER if each in held), word])


@cache
def actions() -> Mapping[str, tuple[str, ...]]:
    """The default keys by `context.action`; no keys for actions without effect here.

    In the file, `g+g` stands for `g g`.
    """
    text = Path(__file__).with_name("keymap.txt").read_text(encoding="utf-8")
    rows = [line.split() for line in text.splitlines()]
    return {name: tuple(key.replace("+", " ") for key in keys) for name, *keys in rows}


def action_names(context: str) -> Collection[str]:
    return [
        name.partition(".")[2] for name in actions() if name.startswith(f"{context}.")
    ]
