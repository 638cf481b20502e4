"""Applies `tui.keymap`: reads the user's own keys as the default keys of the same actions.

So only the reader of keys knows of it, and keys that lost their action are not read at all.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from prompt_toolkit.keys import Keys

from codex_py.config.config import Config
from codex_py.config.declared.section import raw
from codex_py.config.keymap import CONTEXTS, UNBOUND, actions, key_name
from codex_py.errors import ConfigError
from codex_py.frontends.tui.key_codes import ESC, KeyNames

_TARGETS: Final[Mapping[str, str]] = {
    "chat.interrupt_turn": "c-f16",
    "global.copy": "c-f17",
    "global.toggle_vim_mode": "c-f18",
    "composer.toggle_shortcuts": "c-f19",
}
"""Keys that no keyboard has, for actions without a default key or with one that does more."""
_APP: Final = ("composer", "chat", "global")
COMPOSING: Final = ("composer", "editor", "chat", "global")
_FIXED: Final = {
    "ctrl-c": "interrupts and leaves",
    "ctrl-d": "leaves",
    "ctrl-v": "pastes an image",
    "shift-tab": "switches to Plan mode",
}
"""The effects of keys that no keymap changes. Ctrl-Z is one too, but Codex accepts it."""
_ALWAYS: Final = {("c-c",), ("c-z",)}
_TOGETHER: Final = (COMPOSING, ("approval", "list"), *((each,) for each in CONTEXTS))
"""Groups of contexts in which a key does only one thing."""
_NEWLINE: Final = "editor.insert_newline"
_LEADER: Final = "leader "
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
    """The keys of all actions.

    Raises:
        ConfigError: a key would do two things; the error names its place.
    """

    def __init__(self, config: Config) -> None:
        keymap = config.settings.tui.keymap
        tables: Mapping[str, Mapping[str, Any]] = raw(keymap)
        leader = keymap.global_.leader
        if leader is None:
            leader = "ctrl-x"
        leaders = _listed(leader)
        self._own: dict[str, Sequence[str]] = {}
        self._pending: KeyNames = ()
        """Keys that begin a sequence, as they were read."""
        for key in leaders:
            if " " in key or len(key) == 1 or key in {*_FIXED, "ctrl-z"}:
                raise _error(
                    "global.leader", f"`{key}` is no single key that is free", config
                )
        for context in sorted(tables):
            for action, keys in tables[context].items():
                name = f"{context}.{action}"
                # An action of both contexts is the composer's, whose own keys come first and win.
                same = f"composer.{action}"
                if same in actions() and context == "global":
                    name = same
                if name in actions():
                    self._own.setdefault(name, _listed(keys, leaders))
        for contexts in _TOGETHER:
            self._check(contexts, config)

    @property
    def is_own(self) -> bool:
        return bool(self._own)

    @property
    def without_effect(self) -> Sequence[str]:
        return sorted(f"tui.keymap.{name}" for name in self._own if not actions()[name])

    def keys(self, action: str) -> Sequence[str]:
        found = self._own.get(action, actions()[action])
        return [key for key in found if key != UNBOUND]

    def free(self, key: str) -> str:
        """Return a key that Codex has no name for; empty if the prompt has another action there."""
        taken = (
            each
            for context in COMPOSING
            for name in _effective(context)
            for each in self.keys(name)
        )
        if key.lower() in taken:
            return ""
        return key

    def named(self, text: str, *, all: bool = False) -> str:
        """The text with the key, or all keys, in place of each action in braces."""

        def label(match: re.Match[str]) -> str:
            keys = self.keys(match[1])
            if not all:
                keys = keys[:1]
            return ", ".join(map(_title, keys)) or "no key"

        return re.sub(r"\{([a-z]+\.[a-z_]+)\}", label, text)

    def pressed(
        self, name: str, keys: KeyNames, data: str, contexts: Sequence[str]
    ) -> tuple[KeyNames, str]:
        """Translate a key, to no keys while a sequence is incomplete. See `keyboard.Translate`."""
        if name:
            read = (name,)
        else:
            read = tuple(map(_key_text, keys))
        effective = [name for each in reversed(contexts) for name in _effective(each)]
        own = {_keys(key): name for name in effective for key in self.keys(name)}
        if "approval" not in contexts:
            # Everywhere but in questions, a single character is text.
            own = {
                key: name
                for key, name in own.items()
                if name[:5] != "list." or len(key[0]) > 1
            }
        if self._pending:
            read = (*self._pending, *read)
            keys = (*self._pending, *keys)
            data = ""
            self._pending = ()
        if read not in own and any(key[: len(read)] == read for key in own):
            self._pending = keys
            return (), ""
        action = own.get(read)
        usual = {_keys(key): name for name in effective for key in actions()[name]}.get(
            read
        )
        # Esc and Ctrl-D do several things, and lead out of everything.
        if (
            action == usual
            or read in _ALWAYS
            or (action is None and read in {(ESC,), ("c-d",)})
        ):
            return _as_keys(keys), data
        if action is not None:
            found = code(action).split("+")
            text = ""
            if len(found[-1]) == 1:
                text = found[-1]
            return _as_keys(found), text
        if read == ("c-m",) and "composer" in contexts:
            return (Keys.ControlJ,), ""
        # A key without an action still types its text.
        is_text = data.isprintable() and data and not contexts[0].startswith("vim_")
        if is_text:
            return ((Keys.BracketedPaste,), data)
        return ((), "")

    def _check(self, contexts: Sequence[str], config: Config) -> None:
        taken: list[tuple[KeyNames, str]] = []
        names = [name for each in contexts for name in _effective(each)]
        for name in sorted(names, key=self._own.__contains__):
            for key in self.keys(name):
                if key in _FIXED and name in self._own and name.startswith(_APP):
                    raise _error(
                        name, f"`{key}` {_FIXED[key]}; take another key", config
                    )
                read = _keys(key)
                if name in self._own:
                    for before, other in taken:
                        problem = _conflict(name, read, other, before)
                        if problem:
                            text = f"`{key}` {problem} `{other}` too; give that another, or none: []"
                            raise _error(name, text, config)
                taken.append((read, name))


def _conflict(name: str, read: KeyNames, other: str, before: KeyNames) -> str:
    """The reason why the keys of two actions cannot both be read; empty if they can."""
    size = min(len(before), len(read))
    if before[:size] != read[:size]:
        return ""
    if before != read:
        return "cannot go with the keys of"
    if name == other or _NEWLINE in (name, other):
        return ""
    return "is a key of"


def _title(key: str) -> str:
    if len(key) > 1:
        return key.title()
    return key


def _key_text(key: str) -> str:
    if isinstance(key, Keys):
        return key.value
    return key


def _error(name: str, text: str, config: Config) -> ConfigError:
    key = ("tui", "keymap", *name.split("."))
    return config.layers.located(ConfigError(f"`tui.keymap.{name}`: {text}", key=key))


def _listed(keys: str | Sequence[str], leaders: Sequence[str] = ()) -> Sequence[str]:
    if isinstance(keys, str):
        keys = [keys]
    plain: list[str] = []
    led: list[str] = []
    for each in keys:
        name = key_name(each) or ""
        if name.startswith(_LEADER):
            rest = name.removeprefix(_LEADER)
            led += [f"{leader} {rest}" for leader in leaders]
        else:
            plain.append(name)
    return plain + led


@cache
def code(action: str) -> str:
    """The key for `bind` to which the keys of the action are translated."""
    return _TARGETS.get(action) or "+".join(_keys(actions()[action][0]))


def _as_keys(names: Sequence[str]) -> KeyNames:
    return tuple(map(_as_key, names))


def _as_key(name: str) -> str:
    if len(name) == 1:
        return name
    return Keys(name)


@cache
def answers() -> Mapping[str, str]:
    """The actions of questions, in braces, by their default letters."""
    return {actions()[name][0]: f"{{{name}}}" for name in _effective("approval")}


@cache
def _effective(context: str) -> Sequence[str]:
    """The actions of a context that have an effect here."""
    return [
        name
        for name, keys in actions().items()
        if keys and name.startswith(f"{context}.")
    ]


@cache
def _keys(name: str) -> KeyNames:
    """The keys of a name, as they are read; Enter with a modifier is read as its name."""
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
    marks = "".join(
        mark for mark, each in (("c-", "ctrl"), ("s-", "shift")) if each in held
    )
    if "alt" in held:
        return (Keys.Escape.value, marks + key)
    return (marks + key,)
