"""What begins with a slash: commands of the terminal, found by name."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

Work: TypeAlias = "Callable[[Terminal, str], Awaitable[None]]"
"""Does what a command is for. It is given what stands behind the name, stripped."""


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    """Without the slash."""
    help: str
    """A short phrase without a full stop."""
    run: Work
    while_working: bool = True
    """May run beside a turn."""
    aliases: tuple[str, ...] = ()
    argument: str = ""
    """What may stand behind it, for people: `[NAME]`."""


class Commands:
    """All there are, in the order in which they are listed.

    Args:
        load: gives them, when they are first asked for: the first frame needs none.
    """

    def __init__(self, load: Callable[[], Sequence[Command]]) -> None:
        self._load = load

    @cached_property
    def all(self) -> Sequence[Command]:
        return tuple(self._load())

    @cached_property
    def _by_name(self) -> Mapping[str, Command]:
        return {name: command for command in self.all for name in (command.name, *command.aliases)}

    def find(self, line: str) -> tuple[Command, str] | None:
        """The command of a line that begins with a slash, and its argument; None if it is none.

        A path such as `/etc/hosts is wrong` is no command.
        """
        name, _, argument = line[1:].partition(" ")
        command = self._by_name.get(name)
        return None if command is None else (command, argument.strip())

    def unknown(self, line: str) -> str | None:
        """What to say of a line that looks like a command and is none; None if it is a prompt."""
        name = line[1:].split(maxsplit=1)[0] if line[1:].strip() else ""
        if "/" in name or "\n" in line:
            return None
        # Loaded on the way to an error alone.
        from difflib import get_close_matches  # noqa: PLC0415

        near = get_close_matches(name, self._by_name, n=1, cutoff=0.6)
        return f"no command /{name}." + (f" Did you mean /{near[0]}?" if near else "")
