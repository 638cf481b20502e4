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
_MODIFIER: Final = r"(ctrl|control|alt|option|shift|super)-"
"""Matches a modifier. Compiled when a key is read: most users set none."""
_MODIFIERS: Final = {"control": "ctrl", "option": "alt"}
"""Other names of modifiers, with their usual names."""
_ORDER: Final = ("ctrl", "alt", "shift", "super")
"""The order of modifiers in a normalized name."""
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
    names: list[str] = []
    if words[:1] == ["leader"]:
        names.append(words.pop(0))
    if not words:
        return None
    for word in words:
        name = _one_key_name(word)
        if name is None:
            return None
        names.append(name)
    return " ".join(names)


def _one_key_name(word: str) -> str | None:
    """Normalize the name of one key with its modifiers, in lower case; None if it is not one."""
    held: set[str] = set()
    found = re.match(_MODIFIER, word)
    while found is not None:
        modifier = _MODIFIERS.get(found[1], found[1])
        if modifier in held:
            return None
        held.add(modifier)
        word = word[found.end() :]
        found = re.match(_MODIFIER, word)
    key = ALIASES.get(word, word)
    if re.fullmatch(KEY, key) is None:
        return None
    modifiers = [modifier for modifier in _ORDER if modifier in held]
    return "-".join((*modifiers, key))


@cache
def actions() -> Mapping[str, tuple[str, ...]]:
    """The default keys by `context.action`; an action without effect here has none."""
    text = Path(__file__).with_name("keymap.txt").read_text(encoding="utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        name, *keys = line.split()
        # In the file, `g+g` stands for `g g`.
        found[name] = tuple(key.replace("+", " ") for key in keys)
    return found


def action_names(context: str) -> Collection[str]:
    prefix = f"{context}."
    return [name.removeprefix(prefix) for name in actions() if name.startswith(prefix)]
