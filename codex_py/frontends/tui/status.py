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
TITLE_ITEMS: Final = ("activity", "project")
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
    stop_key: str = "Esc"
    """The name of the key that interrupts the turn."""
    background_key: str = "ctrl-b"
    answer_key: str = "Tab"
    """The name of the key that shows a question."""

    def line(self, columns: int) -> Fragments:
        """The status line with the items that fit; the least important ones are left out."""
        known = {name: self.known.get(name, "") for name in self.items}
        parts = {name: printable(text) for name, text in known.items() if text}
        dot = " · "
        room = columns - len(INDENT)

        if get_cwidth(dot.join(parts.values())) > room and "current-dir" in parts:
            parts["current-dir"] = parts["current-dir"].rpartition("/")[2] or "/"
        mode = self.known.get("mode", "")
        if mode:
            room -= get_cwidth(mode + dot)
        kept: dict[str, str] = {}
        for name in sorted(parts, key=lambda name: (*_MOST_FIRST, name).index(name)):
            more = {
                each: text
                for each, text in parts.items()
                if each in kept or each == name
            }
            if get_cwidth(dot.join(more.values())) <= room or not kept:
                kept = more
        words = [(text, self._style(name)) for name, text in kept.items()]
        if mode:
            words.insert(0, (mode, "accent"))
        line: Fragments = [("", INDENT)]
        for n, (text, style) in enumerate(words):
            if n > 0:
                line.append(("class:quiet", dot))
            line.append((f"class:{style}", text))
        used = sum(get_cwidth(text) for _, text, *_ in line)
        if self.hint and used + len(self.hint) + 2 * len(INDENT) <= columns:
            line.append(("class:quiet", self.hint.rjust(columns - used - len(INDENT))))
        return line

    def _style(self, name: str) -> str:
        if name == "permissions" and "full-access" in self.known[name]:
            return "error"
        left = self.known.get("context-remaining", "").partition("%")[0]
        if name.startswith("context-") and left.isdigit() and int(left) < _LITTLE_LEFT:
            if int(left) < _HARDLY_ANY_LEFT:
                return "error"
            return "warning"
        return _STYLES.get(name, "quiet")

    def working(self, columns: int) -> Fragments:
        """The line above the composer; empty while there is no work or question."""
        if not self.announced and self.working_since is None:
            parts: list[str] = []
            if self.commands:
                commands = _counted(len(self.commands), "command")
                parts.append(f"{commands} running in the background (/ps, /stop)")
            if self.agents:
                parts.append(f"{_counted(self.agents, 'agent')} at work (/agents)")
            if parts:
                return [("class:quiet", INDENT + ", ".join(parts))]
            return []
        is_moving = not (self.announced or self.is_asking)
        if is_moving:
            sign = _MOVING[int(time.monotonic()) % len(_MOVING)]
        else:
            sign = "•"
        style, what, remark = self._under_way(columns)
        return [(f"class:{style}", f"{sign} {what}"), ("class:quiet", remark)]

    def _under_way(self, columns: int) -> tuple[str, str, str]:
        count = self.questions
        if self.announced:
            more = f", {count - 1} more" if count > 1 else ""
            remark = f"({self.answer_key} to answer{more})"
            return (
                "warning",
                f"{fit(printable(self.announced), columns - len(remark) - 3)} ",
                remark,
            )
        age = duration(int(time.monotonic() - (self.working_since or 0)))
        stops = f"{self.stop_key.lower()} to interrupt"
        if self.is_asking:
            more = f", {count} more to come" if count else ""
            return "warning", "Waiting for your answer", f"{more} ({age})"
        if count:
            if count == 1:
                waits = "1 question waits"
            else:
                waits = f"{count} questions wait"
            return "warning", waits, f" until this is closed ({age})"
        if self.waiting_for is not None and (missing := self.waiting_for()):
            what = f"Starting MCP servers: {printable(', '.join(missing))} "
            return "accent", what, f"({age} • {self.stop_key.lower()} to go on without)"
        if self.reconnecting is not None:
            return "warning", *self._trying_again(*self.reconnecting, age, columns)
        if self.hooks and time.monotonic() - self.hooks[0][1] >= _NOTABLE_HOOK_S:
            return "accent", f"{self.hooks[0][0]} ", f"({age} • {stops})"
        return "accent", *self._at_work(age, stops, columns)

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

    def _at_work(self, age: str, stops: str, columns: int) -> tuple[str, str]:
        """The text while the model or a call is at work, and the remark on it."""
        if self.agents:
            agents = f" {_counted(self.agents, 'agent')}"
        else:
            agents = ""
        silent_s = int(time.monotonic() - self.heard_at)
        silence = ""
        if not self.is_calling and silent_s >= _SILENT_S:
            silence = f"nothing received for {duration(silent_s)}"
        away = ""
        if self.background_key and self.is_calling and self.commands:
            away = f"{self.background_key}: background"
        facts = [age, self.known.get("turn-usage", ""), silence, away, stops]
        # Use the first that fits, else the last.
        for kept in (
            facts,
            [age, *facts[2:]],
            [age, silence or facts[-1]],
            [age, facts[-1]],
        ):
            told = " • ".join(filter(None, kept))
            if len(told) + len(agents) + _NARROW <= columns:
                break
        room = columns - len(told) - len(agents) - 6
        if room > _NARROW:
            thought = fit(printable(self.thought), room)
        else:
            thought = ""
        return f"{thought or 'Working'} ", f"({told}){agents}"

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
                codex_name = {"project": "project-name", "thread": "thread-name"}.get(
                    name, name
                )
                return self.known.get(codex_name, "")


def _counted(count: int, what: str) -> str:
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

    def notify(kind: Kind, text: str) -> None:
        if wanted is None or isinstance(wanted, bool):
            is_wanted = wanted is not False
        else:
            is_wanted = kind in wanted
        if not is_wanted or (screen.is_focused and not is_always):
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
