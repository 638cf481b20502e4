"""`tui.keymap`: the user's own keys are read as those that do the action by default.

So nothing but the reader of keys knows of it; and keys that lost their action are not read at all.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from prompt_toolkit.keys import Keys

from codex_py.config.config import Config
from codex_py.config.keymap import UNBOUND, actions, key_name
from codex_py.errors import ConfigError
from codex_py.frontends.tui.key_codes import ESC, KeyNames

INTERRUPT, COPY, VIM, SHORTCUTS = (f"c-f{number}" for number in range(16, 20))
"""Of actions that have no key by default, or one that does more. No keyboard has these."""
_TARGETS: Final[Mapping[str, str]] = {
    "chat.interrupt_turn": INTERRUPT,
    "global.copy": COPY,
    "global.toggle_vim_mode": VIM,
    "composer.toggle_shortcuts": SHORTCUTS,
}
_APP: Final = ("composer", "chat", "global")
COMPOSING: Final = ("composer", "editor", "chat", "global")
_CODES: Final = {
    "enter": "c-m",
    "tab": "c-i",
    "backspace": "c-h",
    "esc": ESC,
    "space": " ",
    "minus": "-",
    "page-up": "pageup",
    "page-down": "pagedown",
    "shift-tab": "s-tab",
    "ctrl-space": "c-@",
}


class Keymap:
    """Raises a `ConfigError`, with its place, if a key would do two things."""

    def __init__(self, config: Config) -> None:
        tables: Mapping[str, Any] = config.values.get("tui", {}).get("keymap", {})
        leader = key_name(tables.get("global", {}).get("leader", "ctrl-x")) or ""
        self._own: dict[str, tuple[str, ...]] = {}
        self._pending: KeyNames = ()
        for context in sorted(tables):
            for action, keys in tables[context].items():
                name = f"{context}.{action}"
                # Those that both have are the composer's, whose own are stronger, and come first.
                if (same := f"composer.{action}") in actions() and context == "global":
                    name = same
                if name in actions():
                    found = [keys] if isinstance(keys, str) else keys
                    spelled = (re.sub("^leader ", f"{leader} ", key_name(e) or "") for e in found)
                    self._own.setdefault(name, tuple(spelled))
        for context in {name.partition(".")[0] for name in self._own}:
            self._check(_APP if context in _APP else (context,), config)

    @property
    def is_own(self) -> bool:
        return bool(self._own)

    @property
    def without_effect(self) -> Sequence[str]:
        return sorted(f"tui.keymap.{name}" for name in self._own if not actions()[name])

    def keys(self, action: str) -> Sequence[str]:
        found = self._own.get(action, actions()[action])
        return [key for key in found if key != UNBOUND]

    @property
    def letters(self) -> Mapping[str, str]:
        """The user's own keys for answers, as they are shown, by the letters of these."""
        own = [name for name in _effective("approval") if name in self._own]
        return {actions()[n][0]: self.named(f"{{{n}}}") if self.keys(n) else "" for n in own}

    def named(self, text: str) -> str:
        """The text with the keys of the actions that stand in it in braces."""

        def label(match: re.Match[str]) -> str:
            keys = self.keys(match[1])
            return ", ".join(key.title() if len(key) > 1 else key for key in keys) or "(no key)"

        return re.sub(r"\{([a-z_.]+)\}", label, text)

    def pressed(
        self, name: str, keys: KeyNames, data: str, contexts: Sequence[str]
    ) -> tuple[KeyNames, str]:
        """Give keys and text in place of a key, none while a sequence is not whole; see `keyboard.Translate`."""
        read = (name,) if name else tuple(k.value if isinstance(k, Keys) else k for k in keys)
        effective = [name for each in reversed(contexts) for name in _effective(each)]
        own = {_keys(key): name for name in effective for key in self.keys(name)}
        if self._pending:
            read, self._pending, keys = (*self._pending, *read), (), ()
        if read not in own and any(key[: len(read)] == read for key in own):
            self._pending = read
            return (), ""
        action = own.get(read)
        usual = {_keys(key): name for name in effective for key in actions()[name]}.get(read)
        # Esc and Ctrl-C do more than one thing, and lead out of everything.
        if action == usual or (action is None and read in {(ESC,), ("c-c",)}):
            return keys, data
        if action is not None:
            code = (_TARGETS[action],) if action in _TARGETS else _keys(actions()[action][0])
            found = tuple(each if len(each) == 1 else Keys(each) for each in code)
            return found, code[-1] if len(code[-1]) == 1 else ""
        if read == ("c-m",) and "composer" in contexts:
            return (Keys.ControlJ,), ""
        # What it would type goes to where text goes.
        return ((Keys.BracketedPaste,), data) if data and data.isprintable() else ((), "")

    def _check(self, contexts: Sequence[str], config: Config) -> None:
        taken: dict[str, str] = {}
        names = [name for each in contexts for name in _effective(each)]
        for name in sorted(names, key=self._own.__contains__):
            for key in self.keys(name):
                if (other := taken.setdefault(key, name)) != name:
                    text = f"`tui.keymap.{name}`: `{key}` is a key of `{other}` too; give that another, or none: []"
                    error = ConfigError(text, key=("tui", "keymap", *name.split(".")))
                    raise config.layers.located(error)


@cache
def _effective(context: str) -> Sequence[str]:
    """The actions of a context that have an effect here."""
    return [name for name, keys in actions().items() if keys and name.startswith(f"{context}.")]


@cache
def _keys(name: str) -> KeyNames:
    """The keys of a name, as they are read; Enter with a modifier has none but the name."""
    if " " in name:
        return tuple(key for each in name.split() for key in _keys(each))
    if name in _CODES:
        return (_CODES[name],)
    if name.endswith("-enter"):
        return (name,)
    *held, key = name.replace("page-", "page").split("-")
    key = _CODES.get(key, key)
    if held == ["shift"] and len(key) == 1:
        return (key.upper(),)
    marks = "".join(mark for mark, each in (("c-", "ctrl"), ("s-", "shift")) if each in held)
    return (Keys.Escape.value, marks + key) if "alt" in held else (marks + key,)
