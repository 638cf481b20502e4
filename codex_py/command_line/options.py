"""Options of the command line that an extension adds to the commands of a session."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from codex_py.app.options import SessionOptions, SessionSetup
from codex_py.app.session import TurnResult
from codex_py.command_line.arguments import Arguments
from codex_py.config.config import Config
from codex_py.protocol.approval import Approver
from codex_py.protocol.extension import Feature
from codex_py.protocol.place import Place

EXEC = ("exec",)
SESSIONS = ("exec", "review", "terminal", "acp", "app-server", "mcp-server")
"""The commands that have sessions. `terminal` stands for the one without a name, and for `resume`
and `fork`."""


class Options:
    """The options of an extension that are on a command line.

    A subclass declares them as its attributes, and an instance of it has their values:

        class WordsOptions(Options):
            most_words: Annotated[int | None, option("--most-words", type=int)] = None

    Each method has a part in the run, and is called in the order in which they stand here. They do
    nothing by default, and `self` may keep what a later one needs. Any of them may raise a
    `CodexError`, such as a `UsageError`, which ends the run with one sentence.
    """

    commands: ClassVar[Collection[str]] = EXEC
    """The commands that take the options, of those in `SESSIONS`. Any other refuses them."""
    asks_for_approvals: bool = False
    """True: also `exec`, which has no user to ask, asks for approvals. Otherwise its policy is
    `never`. It may be set in `run`."""
    begins_with_call: bool = False
    """True: the resumed session of `exec` continues with a call that waits, so the prompt is optional.
    It may be set in `run`."""
    is_repeated: ClassVar[bool] = True
    """False: the options are for this run alone, for instance because they name a file that it
    writes. A run that continues it does not get them, nor do several runs side by side."""
    is_unattended: ClassVar[bool] = False
    """True: the terminal shows one turn, without a composer and without a session file, and then
    ends."""
    place: ClassVar[Place] = Place.OUTERMOST
    """The place of the feature among the others."""

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return id(self)

    def check(self, arguments: Arguments) -> None:
        """Check the options with the rest of the command line, which is parsed.

        The options of all extensions are checked before the `run` of any is called.
        """

    def run(self, arguments: Arguments, environment: Mapping[str, str]) -> int | None:  # noqa: ARG002 - for subclasses
        """Take the place of the command, or take what a later part needs of the environment.

        It is called before the configuration is read. If one extension takes the place of the
        command, those after it are not called.

        Args:
            environment: the variables of the program, with all of its secrets.

        Returns:
            None if the command shall run. Otherwise the exit code: the command does not run.
        """
        return None

    def settings(self, arguments: Arguments) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """Return settings in the form of `config.toml`, which win over those of the files."""
        return {}

    def begin(self, config: Config) -> None:
        """Take the configuration of `exec` or `review`, before the session is opened.

        A file for a result is opened here, so that a bad path costs no request.
        """

    def session(self, options: SessionOptions) -> SessionOptions:
        """Return the options with which the session is opened.

        `exec`, `review` and the terminal call this, once for each session.
        """
        return options

    def approver(self) -> Approver | None:
        """Return what decides approvals in `exec` that nothing else has decided. None denies them."""
        return None

    def feature(self, setup: SessionSetup) -> Feature | None:  # noqa: ARG002 - for subclasses
        """Make the feature of the session; None if the options need none.

        It is called once for the session at the top, whose subagents share the feature. A feature
        with a method `for_child(setup)` gives each of them another one.
        """
        return None

    def finish(self, result: TurnResult) -> None:
        """Take the result of `exec` or `review`, after the answer was delivered."""
