"""The line below the composer, the one above it while the agent works, and the window's title."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol.events import Reconnecting, UsageReported
from codex_py.protocol.settings import TurnSettings

ITEMS: Final = (
    "model-with-reasoning",
    "current-dir",
    "git-branch",
    "permissions",
    "context-remaining",
    "used-tokens",
    "thread-name",
)
"""In the order in which they are shown unless `tui.status_line` says otherwise; named as Codex does."""
_MOST_FIRST: Final = (
    *("model-with-reasoning", "model-name", "model", "current-dir", "permissions"),
    *("context-remaining", "context-used", "git-branch", "thread-name"),
)
"""What is kept where there is no room for all."""
TITLE_ITEMS: Final = ("activity", "project")


@dataclass(slots=True)
class Status:
    """What is known of the conversation right now."""

    home: Path
    items: Sequence[str] = ITEMS
    """Of the line, by name; unknown ones are left out."""
    title_items: Sequence[str] = TITLE_ITEMS
    settings: TurnSettings | None = None
    usage: UsageReported | None = None
    thread: str = ""
    """Its id."""
    name: str = ""
    """What the user calls the conversation."""
    branch: str = ""
    working_since: float | None = None
    """`time.monotonic()`; None while nothing is worked on."""
    is_asking: bool = False
    """The agent waits for an answer."""
    announced: str = ""
    """The question that waits until the user has stopped writing."""
    reconnecting: tuple[Reconnecting, float] | None = None
    """The request that failed last, while it is not answered, and when it is sent again, `time.monotonic()`."""
    waiting_for: Callable[[], Sequence[str]] | None = None
    """Gives the MCP servers without which the request is not sent yet."""
    commands: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])
    """What the agent has started and has not ended, by id: the command and `time.monotonic()`."""
    questions: int = 0
    """That wait for their turn to be asked."""

    def line(self, theme: Theme, columns: int) -> Fragments:
        """As much as there is room for, the least important left out."""
        known = {name: self._item(name) for name in self.items}
        parts = {name: text for name, text in known.items() if text}
        dot = f" {theme.glyph('dot')} "
        room = columns - 1

        if get_cwidth(dot.join(parts.values())) > room and "current-dir" in parts:
            parts["current-dir"] = parts["current-dir"].rpartition("/")[2] or "/"
        kept: dict[str, str] = {}
        for name in sorted(parts, key=_rank):
            more = {each: text for each, text in parts.items() if each in kept or each == name}
            if get_cwidth(dot.join(more.values())) <= room or not kept:
                kept = more
        return [("class:quiet", dot.join(kept.values()))]

    def working(self, theme: Theme) -> Fragments:
        """Empty while nothing is worked on, and nothing asked."""
        dot = theme.glyph("bullet")
        if self.announced:
            more = f", {self.questions - 1} more to come" if self.questions > 1 else ""
            return [
                ("class:warning", f"{dot} {printable(self.announced)} "),
                ("class:quiet", f"(Tab to answer{more})"),
            ]
        if self.working_since is None:
            count = len(self.commands)
            plural = "s" if count > 1 else ""
            text = f"{count} command{plural} running in the background (/ps, /stop)"
            return [("class:quiet", text)] if count else []
        age = duration(int(time.monotonic() - self.working_since))
        if self.is_asking:
            more = f", {self.questions} more to come" if self.questions else ""
            return [
                ("class:warning", f"{dot} Waiting for your answer"),
                ("class:quiet", f"{more} ({age})"),
            ]
        if self.questions:
            waits = (
                "1 question waits" if self.questions == 1 else f"{self.questions} questions wait"
            )
            return [
                ("class:warning", f"{dot} {waits}"),
                ("class:quiet", f" until this is closed ({age})"),
            ]
        if self.waiting_for is not None and (missing := self.waiting_for()):
            names = printable(", ".join(missing))
            return [
                ("class:accent", f"{dot} Starting MCP servers: {names} "),
                ("class:quiet", f"({age} {dot} esc to go on without)"),
            ]
        if self.reconnecting is not None:
            retry, at = self.reconnecting
            wait_s = math.ceil(at - time.monotonic())
            soon = f"{duration(wait_s)} {dot} " if wait_s > 0 else ""
            return [
                (
                    "class:warning",
                    f"{dot} Reconnecting... {retry.attempt}/{retry.max_attempts} ",
                ),
                ("class:quiet", f"({soon}esc to interrupt)"),
            ]
        return [
            ("class:accent", f"{dot} Working "),
            ("class:quiet", f"({age} {dot} esc to interrupt)"),
        ]

    def title(self, theme: Theme) -> str:
        """For the terminal's window; empty where the user wants none."""
        words = [self._title_item(name, theme) for name in self.title_items]
        return printable(" ".join(word for word in words if word))[:200]

    def _title_item(self, name: str, theme: Theme) -> str:
        match name:
            case "activity" | "spinner" | "status" | "run-state":
                if self.is_asking or self.announced:
                    return "[?]"
                return theme.glyph("bullet") if self.working_since is not None else ""
            case "project" | "project-name":
                return "" if self.settings is None else self.settings.cwd.name
            case "app-name":
                return "codex-py"
            case "thread":
                return self.name
            case _:
                return self._item(name)

    def _item(self, name: str) -> str:
        find = _FIND.get(name)
        return "" if find is None or self.settings is None else printable(find(self, self.settings))


def _rank(name: str) -> int:
    return _MOST_FIRST.index(name) if name in _MOST_FIRST else len(_MOST_FIRST)


def _permissions(_: Status, settings: TurnSettings) -> str:
    mode, policy = settings.sandbox_policy.mode, str(settings.approval_policy)
    return mode if policy == "on-request" else f"{mode}, {policy}"


def _directory(status: Status, settings: TurnSettings) -> str:
    cwd = str(settings.cwd)
    inside = settings.cwd.is_relative_to(status.home)
    return "~" + cwd[len(str(status.home)) :] if inside else cwd


def _model(_: Status, settings: TurnSettings) -> str:
    return " ".join(word for word in (settings.model, settings.reasoning_effort) if word)


def _left(status: Status, _: TurnSettings) -> str:
    return "" if status.usage is None else f"{status.usage.context_left_percent}% left"


def _used(status: Status, _: TurnSettings) -> str:
    return "" if status.usage is None else f"{100 - status.usage.context_left_percent}% used"


def _tokens(count: Callable[[UsageReported], int], what: str) -> "_Find":
    def find(status: Status, _: TurnSettings) -> str:
        return "" if status.usage is None else f"{short_count(count(status.usage))} {what}"

    return find


_Find: TypeAlias = "Callable[[Status, TurnSettings], str]"

_FIND: Final[dict[str, _Find]] = {
    "model": lambda _, settings: settings.model,
    "model-name": lambda _, settings: settings.model,
    "model-with-reasoning": _model,
    "reasoning": lambda _, settings: settings.reasoning_effort or "",
    "current-dir": _directory,
    "project-name": lambda _, settings: settings.cwd.name,
    "git-branch": lambda status, _: status.branch,
    "permissions": _permissions,
    "context-remaining": _left,
    "context-used": _used,
    "context-window-size": _tokens(lambda usage: usage.context_window, "window"),
    "used-tokens": _tokens(lambda usage: usage.total.total_tokens, "tokens"),
    "total-input-tokens": _tokens(lambda usage: usage.total.input_tokens, "in"),
    "total-output-tokens": _tokens(lambda usage: usage.total.output_tokens, "out"),
    "session-id": lambda status, _: status.thread,
    "thread-name": lambda status, _: status.name,
}


def short_count(count: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if count < 1_000:
        return str(count)
    number, unit = (count / 1_000, "k") if count < 999_950 else (count / 1_000_000, "M")
    return f"{number:.1f}".removesuffix(".0") + unit


def duration(seconds: int) -> str:
    """`42s`, `3m 05s`, `1h 02m`."""
    minutes, seconds = divmod(seconds, 60)
    if not minutes:
        return f"{seconds}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {seconds:02}s"
