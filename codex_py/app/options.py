"""How a session is opened. LIGHT."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from codex_py.config.config import Config
from codex_py.protocol.elicitation import Elicitor
from codex_py.protocol.frozen import frozen
from codex_py.protocol.settings import Choices

McpStartupWait: TypeAlias = Callable[
    [Callable[[], Sequence[str]], Awaitable[None]], Awaitable[None]
]
"""Waits for MCP servers to start, or for a while. Gets a function that lists the pending ones, and an awaitable that
completes when none are."""


@frozen
class SessionOptions:
    """How a session is opened, beside its configuration."""

    source: Literal["exec", "cli", "mcp"] = "exec"
    """For the session file."""
    originator: str = "codex_exec"
    ephemeral: bool = False
    """Write no session file."""
    resume: str | None = None
    """Id or name of the thread to go on with."""
    resume_last: bool = False
    """Go on with the newest session of this working directory and provider."""
    resume_all: bool = False
    """With `resume_last`: of any working directory."""
    fork: bool = False
    """Go on in a copy with an id of its own; with `resume` or `resume_last`."""
    choices: Choices | None = None
    """Run with these in place of those of the configuration and of `add_dirs`."""
    add_dirs: tuple[Path, ...] = ()
    """Writable roots beside those of the configuration; absolute."""
    record: Path | None = None
    """Write the exchange with the model to this tape."""
    replay: Path | None = None
    """Answer from this tape instead of the provider."""
    stream_retries: int = 5
    """Retries of an answer that broke off or did not begin, where the provider's settings do not say."""
    ignore_rules: bool = False
    """Leave out the files of command rules."""
    keep_commands: bool = False
    """Commands run on between turns. False: they end with the turn, so that their items are complete before its end."""
    text_deltas: bool = True
    """Emit the text of answers and of reasoning as it streams. Without a listener it need not even be parsed."""
    mcp_startup_wait: McpStartupWait | None = None
    """Waits with a request until MCP servers have started, or less long; None waits for all."""


@frozen
class SessionSetup:
    """What features are made of."""

    config: Config
    options: SessionOptions
    environment: Mapping[str, str]
    elicitor: Elicitor
    """Answers what MCP servers ask the user."""
    warn: Callable[[str], None]
    """Tells the user something, each text once."""
