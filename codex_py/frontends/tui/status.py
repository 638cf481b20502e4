"""Shows everything but the conversation: the status lines, the window's title, notifications."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from prompt_toolkit.utils import get_cwidth

from codex_py.config.declared.tui import Tui
from codex_py.frontends.tui.first_frame import BEGINNING, INDENT
from codex_py.frontends.tui.fitting import Fragments, fit
from codex_py.frontends.tui.screen import Screen
from codex_py.streams.terminal import printable
from codex_py.streams.times import duration

ITEMS: Final = (
    "model-with-reasoning",
    "current-dir",
    "git-branch",
    "permissions",
    "context-remaining",
    "turn-usage",
    "thread-name",
)
"""The items of the line in their order, unless `tui.status_line` is set; named as in Codex."""
_MOST_FIRST: Final = (
    "model-with-reasoning",
    "model-name",
    "model",
    "current-dir",
    "permissions",
    "context-remaining",
    "context-used",
    "turn-usage",
    "git-branch",
    "thread-name",
)
"""The items by importance: the first are kept if there is no room for all."""
_STYLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("model", "model-name", "model-with-reasoning"), "accent"),
    "current-dir": "ok",
    "git-branch": "plan",
}
_LITTLE_LEFT = 20
_HARDLY_ANY_LEFT = 5
"""Per cent of the context window."""
_NARROW: Final = 14
"""Columns for the activity of the model."""
_SILENT_S: Final = 20.0
_MOVING: Final = "⠋⠙⠸⠴⠦⠇"
_NOTABLE_HOOK_S: Final = 1.0
_DOT: Final = " · "
"""The sign between two items."""
TITLE_ITEMS: Final = ("activity", "project")
_NAMES_IN_TITLE: Final[Mapping[str, str]] = {
    "project": "project-name",
    "thread": "thread-name",
}
"""The items that have other names in `tui.terminal_title`."""
Kind: TypeAlias = Literal["agent-turn-complete", "approval-requested"]
"""The kinds of notifications, as `tui.notifications` names them."""
Notify: TypeAlias = Callable[[Kind, str], None]

_LONGEST: Final = 200
_KNOW_OSC9: Final = ("iTerm.app", "WezTerm", "ghostty", "WarpTerminal")
"""Terminals that know the sequence, by `TERM_PROGRAM`. Others may show its text."""


@dataclass(slots=True)
class Status:
    """The present state of the conversation."""

    items: Sequence[str] = ITEMS
    """The items of the line, by name; unknown ones are left out."""
    title_items: Sequence[str] = TITLE_ITEMS
    known: dict[str, str] = field(default_factory=dict[str, str])
    """The text of each known item; not yet safe for a terminal."""
    working_since: float | None = None
    """The time when work began, `time.monotonic()`; None while there is no work."""
    is_asking: bool = False
    """True while the agent waits for an answer."""
    announced: str = ""
    """The question that waits until the user has stopped writing; empty if none does."""
    reconnecting: tuple[str, int, float] | None = None
    """The reason, the number of the attempt, and the time of the next one (`time.monotonic()`).

    None while no request is being sent again.
    """
    waiting_for: Callable[[], Sequence[str]] | None = None
    """Returns the names of the MCP servers that the request waits for."""
    commands: dict[str, tuple[str, float]] = field(
        default_factory=dict[str, tuple[str, float]]
    )
    """The agent's running commands, by id: the command and its start, `time.monotonic()`."""
    hooks: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """The hooks that the turn waits for: the text and the start, `time.monotonic()`."""
    agents: int = 0
    """The number of subagents at work."""
    asking: list[str | None] = field(default_factory=list[str | None])
    """The agents that wait for an answer, by name; None for the session's own."""
    hint: str = BEGINNING
    """The text at the right of the line, until the first prompt."""
    thought: str = ""
    """The heading of the model's thought."""
    heard_at: float = 0.0
    """The time when the model was last heard, `time.monotonic()`."""
    is_calling: bool = False
    """True while a call runs: nothing is expected of the model."""
    questions: int = 0
    """The number of questions that wait to be asked."""
    asked: int = 0
    """The number of questions that were asked since none waited, with the one that is shown."""
    stop_key: str = "Esc"
    """The name of the key that interrupts the turn."""
    background_key: str = "ctrl-b"
    answer_key: str = "Tab"
    """The name of the key that shows a question."""

    def line(self, columns: int) -> Fragments:
        """The status line with the items that fit; the least important ones are left out."""
        words: list[tuple[str, str]] = []
        room = columns - len(INDENT)
        mode = self.known.get("mode", "")
        if mode:
            words.append((mode, "accent"))
        for name, text in self._items_in(room, mode).items():
            words.append((text, self._style(name)))
        line: Fragments = [("", INDENT)]
        for n, (text, style) in enumerate(words):
            if n > 0:
                line.append(("class:quiet", _DOT))
            line.append((f"class:{style}", text))
        used = sum(get_cwidth(text) for _, text, *_ in line)
        left = columns - used - len(INDENT)
        if self.hint and len(self.hint) + len(INDENT) <= left:
            line.append(("class:quiet", self.hint.rjust(left)))
        return line

    def _items_in(self, columns: int, mode: str) -> Mapping[str, str]:
        """The items that fit beside the mode, by name and in their order; one at least."""
        texts: dict[str, str] = {}
        for name in self.items:
            text = self.known.get(name, "")
            if text:
                texts[name] = printable(text)
        width = get_cwidth(_DOT.join(texts.values()))
        if width > columns and "current-dir" in texts:
            _, _, folder = texts["current-dir"].rpartition("/")
            texts["current-dir"] = folder or "/"
        if mode:
            columns -= get_cwidth(mode + _DOT)
        kept: set[str] = set()
        for name in sorted(texts, key=_importance):
            more = kept | {name}
            shown = [text for each, text in texts.items() if each in more]
            if get_cwidth(_DOT.join(shown)) <= columns or not kept:
                kept = more
        return {name: text for name, text in texts.items() if name in kept}

    def _style(self, name: str) -> str:
        if name == "permissions" and "full-access" in self.known[name]:
            return "error"
        left = self.known.get("context-remaining", "").partition("%")[0]
        if name.startswith("context-") and left.isdigit():
            if int(left) < _HARDLY_ANY_LEFT:
                return "error"
            if int(left) < _LITTLE_LEFT:
                return "warning"
        return _STYLES.get(name, "quiet")

    def working(self, columns: int) -> Fragments:
        """The line above the composer; empty while there is no work or question."""
        if not self.announced and self.working_since is None:
            return self._in_background()
        if self.announced or self.is_asking:
            sign = "•"
        else:
            sign = _MOVING[int(time.monotonic()) % len(_MOVING)]
        style, what, remark = self._under_way(columns)
        return [(f"class:{style}", f"{sign} {what}"), ("class:quiet", remark)]

    def _in_background(self) -> Fragments:
        """The commands and agents that work while the user is to write."""
        parts: list[str] = []
        if self.commands:
            commands = _count_of(len(self.commands), "command")
            parts.append(f"{commands} running in the background (/ps, /stop)")
        if self.agents:
            parts.append(f"{_count_of(self.agents, 'agent')} at work (/agents)")
        if not parts:
            return []
        return [("class:quiet", INDENT + ", ".join(parts))]

    def _under_way(self, columns: int) -> tuple[str, str, str]:
        """The most notable thing under way: a style, what it is, and a remark on it."""
        if self.announced:
            return "warning", *self._announcement(columns)
        age = duration(int(time.monotonic() - (self.working_since or 0)))
        stops = f"{self.stop_key.lower()} to interrupt"
        if self.is_asking:
            which = ""
            count = self.asked + self.questions
            if count > 1:
                which = f" to question {self.asked} of {count}"
            return "warning", f"Waiting for your answer{which}", f" ({age})"
        if self.questions:
            waits = f"{self.questions} questions wait"
            if self.questions == 1:
                waits = "1 question waits"
            return "warning", waits, f" until this is closed ({age})"
        starting = self._starting_servers()
        if starting:
            what = f"Starting MCP servers: {printable(', '.join(starting))} "
            return "accent", what, f"({age} • {self.stop_key.lower()} to go on without)"
        if self.reconnecting is not None:
            cause, attempt, at = self.reconnecting
            again = self._trying_again(cause, attempt, at, age, columns)
            return "warning", *again
        if self.hooks:
            text, began = self.hooks[0]
            if time.monotonic() - began >= _NOTABLE_HOOK_S:
                return "accent", f"{text} ", f"({age} • {stops})"
        return "accent", *self._at_work(age, stops, columns)

    def _announcement(self, columns: int) -> tuple[str, str]:
        """The question that waits, and the key that shows it."""
        more = ""
        if self.questions > 1:
            more = f", {self.questions - 1} more"
        remark = f"({self.answer_key} to answer{more})"
        question = fit(printable(self.announced), columns - len(remark) - 3)
        return f"{question} ", remark

    def _starting_servers(self) -> Sequence[str]:
        """The names of the MCP servers that the request waits for."""
        if self.waiting_for is None:
            return ()
        return self.waiting_for()

    def _trying_again(
        self, cause: str, tries: int, at: float, age: str, columns: int
    ) -> tuple[str, str]:
        """The text while a request waits to be sent again, and the remark on it."""
        what = "Trying again"
        wait_s = math.ceil(at - time.monotonic())
        if wait_s > 0:
            what += f" in {duration(wait_s)}"
        remark = f" (try {tries + 1}, {age}; {self.stop_key} stops)"
        room = columns - len(f"• . {what}{remark} ")
        if room <= 0:
            return what, remark
        why = printable(fit(cause.removeprefix("unexpected status "), room)) + ". "
        return why.replace("….", "…") + what, remark

    def _at_work(
        self,
        age: str,
        stops: str,
        columns: int,
    ) -> tuple[str, str]:
        """The text while the model or a call is at work, and the remark on it."""
        agents = ""
        if self.agents:
            agents = f" {_count_of(self.agents, 'agent')}"
        facts = self._facts(age, stops, columns - len(agents) - _NARROW)
        thought = ""
        room = columns - len(facts) - len(agents) - 6
        if room > _NARROW:
            thought = fit(printable(self.thought), room)
        return f"{thought or 'Working'} ", f"({facts}){agents}"

    def _facts(
        self,
        age: str,
        stops: str,
        columns: int,
    ) -> str:
        """The facts on the running work that fit; its age and the key that stops it in any case."""
        usage = self.known.get("turn-usage", "")
        silent_s = int(time.monotonic() - self.heard_at)
        silence = ""
        if not self.is_calling and silent_s >= _SILENT_S:
            silence = f"nothing received for {duration(silent_s)}"
        away = ""
        if self.background_key and self.is_calling and self.commands:
            away = f"{self.background_key}: background"
        for facts in (
            [age, usage, silence, away, stops],
            [age, silence, away, stops],
            [age, silence or stops],
        ):
            joined = " • ".join(filter(None, facts))
            if len(joined) <= columns:
                return joined
        return f"{age} • {stops}"

    def title(self) -> str:
        """The title of the terminal's window; empty if the user wants none."""
        words = [self._title_item(name) for name in self.title_items]
        return printable(" ".join(word for word in words if word))[:200]

    def _title_item(self, name: str) -> str:
        match name:
            case "activity" | "spinner" | "status" | "run-state":
                if self.is_asking or self.announced:
                    return "[?]"
                if self.working_since is not None:
                    return "•"
                return ""
            case "app-name":
                return "codex-py"
            case _:
                return self.known.get(_NAMES_IN_TITLE.get(name, name), "")


def _importance(name: str) -> int:
    """The place of an item among those of which the first are kept."""
    if name in _MOST_FIRST:
        return _MOST_FIRST.index(name)
    return len(_MOST_FIRST)


def _count_of(count: int, what: str) -> str:
    """A count with its noun: `1 agent`, `2 agents`."""
    if count > 1:
        return f"{count} {what}s"
    return f"{count} {what}"


def notifications(
    settings: Tui, environment: Mapping[str, str], screen: Screen
) -> Notify:
    """Make the function that sends notifications, as the table `tui` of the configuration asks.

    It sends only if the user looks elsewhere, unless the configuration says always.
    """
    wanted = settings.notifications
    is_always = settings.notification_condition == "always"
    method = settings.notification_method
    if method in {None, "auto"}:
        method = _best_method(environment)

    def is_wanted(kind: Kind) -> bool:
        if screen.is_focused and not is_always:
            return False
        if wanted is None or isinstance(wanted, bool):
            return wanted is not False
        return kind in wanted

    def notify(kind: Kind, text: str) -> None:
        if not is_wanted(kind):
            return
        line = printable(" ".join(text.split()))[:_LONGEST]
        match method:
            case "osc9":
                screen.send(f"\x1b]9;{line}\x07")
            case "osc777":
                # Semicolons separate the parts of this sequence.
                screen.send(f"\x1b]777;notify;codex-py;{line.replace(';', ',')}\x07")
            case _:
                screen.send("\x07")

    return notify


def _best_method(environment: Mapping[str, str]) -> Literal["osc9", "bel"]:
    if "TMUX" in environment or "STY" in environment:
        # These programs keep sequences to themselves, and pass a bell on.
        return "bel"
    is_kitty = (
        "KITTY_WINDOW_ID" in environment or environment.get("TERM") == "xterm-kitty"
    )
    if is_kitty or environment.get("TERM_PROGRAM") in _KNOW_OSC9:
        return "osc9"
    return "bel"
