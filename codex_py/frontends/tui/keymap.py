"""Applies `tui.keymap`: reads the user's own keys as the default keys of the same actions.

Only the reader of keys knows of it. All other modules bind the default keys. A default key that
lost its action is not read at all.
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
_TOGETHER: Final = (
    COMPOSING,
    ("approval", "list"),
    *((context,) for context in CONTEXTS),
)
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
        leaders = _leaders(config)
        self._own = _own_keys(raw(config.settings.tui.keymap), leaders)
        """The user's own keys of actions, by action."""
        self._pending: KeyNames = ()
        """Keys that begin a sequence, as they were read."""
        for contexts in _TOGETHER:
            self._check(contexts, config)

    @property
    def is_own(self) -> bool:
        """True if the user has keys of their own."""
        return bool(self._own)

    @property
    def without_effect(self) -> Sequence[str]:
        """The keys of the configuration for actions that this program does not have."""
        return sorted(f"tui.keymap.{name}" for name in self._own if not actions()[name])

    def keys(self, action: str) -> Sequence[str]:
        """The keys of an action, as the configuration names them."""
        found = self._own.get(action, actions()[action])
        return [key for key in found if key != UNBOUND]

    def free(self, key: str) -> str:
        """Return a key that Codex has no name for; empty if the prompt has another action there."""
        for context in COMPOSING:
            for name in _effective(context):
                if key.lower() in self.keys(name):
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
        if self._pending:
            read = (*self._pending, *read)
            keys = (*self._pending, *keys)
            data = ""
            self._pending = ()
        actions_now = self._actions_by_keys(contexts)
        action = actions_now.get(read)
        if action is None and any(key[: len(read)] == read for key in actions_now):
            self._pending = keys
            return (), ""
        # Esc and Ctrl-D do several things, and lead out of everything.
        leads_out = action is None and read in {(ESC,), ("c-d",)}
        is_usual = action == _default_action(read, contexts)
        if is_usual or leads_out or read in _ALWAYS:
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
        is_text = data != "" and data.isprintable()
        if is_text and not contexts[0].startswith("vim_"):
            return (Keys.BracketedPaste,), data
        return (), ""

    def _actions_by_keys(self, contexts: Sequence[str]) -> Mapping[KeyNames, str]:
        """The action of each key in these contexts, of which the first one wins."""
        found: dict[KeyNames, str] = {}
        for name in _effective_in(contexts):
            for key in self.keys(name):
                found[_keys(key)] = name
        if "approval" in contexts:
            return found
        # Everywhere but in questions, a single character is text.
        return {
            read: name
            for read, name in found.items()
            if len(read[0]) > 1 or not name.startswith("list.")
        }

    def _check(self, contexts: Sequence[str], config: Config) -> None:
        names: list[str] = []
        for context in contexts:
            names += _effective(context)
        # The user's own keys are last: each is compared with all the others.
        names.sort(key=self._own.__contains__)
        taken: list[tuple[KeyNames, str]] = []
        for name in names:
            for key in self.keys(name):
                if name in self._own:
                    problem = _problem(name, key, taken)
                    if problem:
                        raise _error(name, problem, config)
                taken.append((_keys(key), name))


def _leaders(config: Config) -> Sequence[str]:
    """The keys that begin the sequences of `leader`. Raises `ConfigError` if one is not free."""
    leader = config.settings.tui.keymap.global_.leader
    if leader is None:
        leader = "ctrl-x"
    leaders = _listed(leader)
    for key in leaders:
        is_single = " " not in key and len(key) > 1
        if not is_single or key in {*_FIXED, "ctrl-z"}:
            message = f"`{key}` is no single key that is free"
            raise _error("global.leader", message, config)
    return leaders


def _own_keys(
    tables: Mapping[str, Mapping[str, Any]], leaders: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """The keys that the configuration gives to actions, by action. `tables`: one per context."""
    own: dict[str, Sequence[str]] = {}
    for context in sorted(tables):
        for action, keys in tables[context].items():
            name = f"{context}.{action}"
            # An action of both contexts is the composer's, whose own keys come first and win.
            same = f"composer.{action}"
            if same in actions() and context == "global":
                name = same
            if name in actions():
                own.setdefault(name, _listed(keys, leaders))
    return own


def _problem(
    name: str,
    key: str,
    taken: Sequence[tuple[KeyNames, str]],
) -> str:
    """The reason why an action cannot have a key; empty if it can.

    `taken`: the keys that other actions have, each with its action.
    """
    if key in _FIXED and name.startswith(_APP):
        return f"`{key}` {_FIXED[key]}; take another key"
    for before, other in taken:
        conflict = _conflict(name, _keys(key), other, before)
        if conflict:
            return f"`{key}` {conflict} `{other}` too; give that another, or none: []"
    return ""


def _default_action(read: KeyNames, contexts: Sequence[str]) -> str | None:
    """The action of a key if the user has no keys of their own."""
    found = None
    for name in _effective_in(contexts):
        if read in map(_keys, actions()[name]):
            found = name
    return found


def _conflict(
    name: str,
    read: KeyNames,
    other: str,
    before: KeyNames,
) -> str:
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


def _error(
    name: str,
    text: str,
    config: Config,
) -> ConfigError:
    key = ("tui", "keymap", *name.split("."))
    return config.layers.located(ConfigError(f"`tui.keymap.{name}`: {text}", key=key))


def _listed(keys: str | Sequence[str], leaders: Sequence[str] = ()) -> Sequence[str]:
    """The names of keys of the configuration, with each of the leaders in place of `leader`."""
    if isinstance(keys, str):
        keys = [keys]
    without_leader: list[str] = []
    with_leader: list[str] = []
    for each in keys:
        name = key_name(each) or ""
        if name.startswith(_LEADER):
            rest = name.removeprefix(_LEADER)
            with_leader += [f"{leader} {rest}" for leader in leaders]
        else:
            without_leader.append(name)
    return without_leader + with_leader


@cache
def code(action: str) -> str:
    """The key for `bind` to which the keys of the action are translated."""
    if action in _TARGETS:
        return _TARGETS[action]
    default, *_ = actions()[action]
    return "+".join(_keys(default))


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


def _effective_in(contexts: Sequence[str]) -> list[str]:
    """The actions of contexts, those of the last context first."""
    names: list[str] = []
    for context in reversed(contexts):
        names += _effective(context)
    return names


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
    if "shift" in held:
        key = f"s-{key}"
    if "ctrl" in held:
        key = f"c-{key}"
    if "alt" in held:
        return (Keys.Escape.value, key)
    return (key,)
