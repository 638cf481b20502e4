"""What the program shows besides the conversation: the status lines, the window's title, and notifications."""

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
"""In the order in which they are shown unless `tui.status_line` says otherwise; named as Codex does."""
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
"""What is kept where there is no room for all."""
_STYLES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("model", "model-name", "model-with-reasoning"), "accent"),
    "current-dir": "ok",
    "git-branch": "plan",
}
_LITTLE_LEFT = 20
_HARDLY_ANY_LEFT = 5
"""Per cent of the window."""
_NARROW: Final = 14
"""Columns for what the model does."""
_SILENT_S: Final = 20.0
_MOVING: Final = "⠋⠙⠸⠴⠦⠇"
_NOTABLE_HOOK_S: Final = 1.0
TITLE_ITEMS: Final = ("activity", "project")
Kind: TypeAlias = Literal["agent-turn-complete", "approval-requested"]
"""As `tui.notifications` names them."""
Notify: TypeAlias = Callable[[Kind, str], None]

_LONGEST: Final = 200
_KNOW_OSC9: Final = ("iTerm.app", "WezTerm", "ghostty", "WarpTerminal")
"""By `TERM_PROGRAM`. The others may show the text of a sequence that they do not know."""


@dataclass(slots=True)
class Status:
    """What is known of the conversation right now."""

    items: Sequence[str] = ITEMS
    """Of the line, by name; unknown ones are left out."""
    title_items: Sequence[str] = TITLE_ITEMS
    known: dict[str, str] = field(default_factory=dict[str, str])
    """The text of each item that is known; nothing in it is safe for a terminal yet."""
    working_since: float | None = None
    """`time.monotonic()`; None while nothing is under way."""
    is_asking: bool = False
    """The agent waits for an answer."""
    announced: str = ""
    """The question that waits until the user has stopped writing."""
    reconnecting: tuple[str, int, float] | None = None
    """Why and how often a request is sent again, until it is answered, and when next, `time.monotonic()`."""
    waiting_for: Callable[[], Sequence[str]] | None = None
    """Names the MCP servers that the request waits for."""
    commands: dict[str, tuple[str, float]] = field(
        default_factory=dict[str, tuple[str, float]]
    )
    """Commands of the agent that run, by id: the command and when it was started, `time.monotonic()`."""
    hooks: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """Those that the turn waits for: what is said of one, and when it was started, `time.monotonic()`."""
    agents: int = 0
    """How many subagents are at work."""
    asking: list[str | None] = field(default_factory=list[str | None])
    """The names of the agents that wait for an answer; None for the session's own."""
    hint: str = BEGINNING
    """At the right of the line, until the first prompt."""
    thought: str = ""
    """The heading of what the model thinks about."""
    heard_at: float = 0.0
    """When the model was last heard, `time.monotonic()`."""
    is_calling: bool = False
    """A call runs: nothing is expected of the model."""
    questions: int = 0
    """How many wait for their turn to be asked."""
    stop_key: str = "Esc"
    """The name of the key that interrupts."""
    background_key: str = "ctrl-b"
    answer_key: str = "Tab"
    """The name of the key that shows a question."""

    def line(self, columns: int) -> Fragments:
        """As much as there is room for; the least important is left out."""
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
        """The line above the composer; empty while nothing is under way or asked."""
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
        """What is said while a request waits to be sent again, and the remark on it."""
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
        """What is said while the model or a call is at work, and the remark on it."""
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
        # The first that fits, else the last.
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
        """For the terminal's window; empty if the user wants none."""
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
    """Sends what the table `tui` of the configuration asks for, if the user looks elsewhere."""
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
                # Its parts are told apart by semicolons.
                screen.send(f"\x1b]777;notify;codex-py;{line.replace(';', ',')}\x07")
            case _:
                screen.send("\x07")

    return notify


def _best_method(environment: Mapping[str, str]) -> Literal["osc9", "bel"]:
    if "TMUX" in environment or "STY" in environment:
        # They keep sequences to themselves, and pass a bell on.
        return "bel"
    is_kitty = (
        "KITTY_WINDOW_ID" in environment or environment.get("TERM") == "xterm-kitty"
    )
    if is_kitty or environment.get("TERM_PROGRAM") in _KNOW_OSC9:
        return "osc9"
    return "bel"
