"""The options and the setup with which a session is opened. LIGHT."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from codex_py.config.config import Config
from codex_py.core.session import Session
from codex_py.core.thread_log import ThreadState
from codex_py.filesystem.folder_times import FolderTimes
from codex_py.model.auth import TokenSource
from codex_py.model.providers import Provider
from codex_py.protocol.approval import Approver
from codex_py.protocol.extension import Feature, NewChild, ParentThread, Thread
from codex_py.protocol.frozen import frozen
from codex_py.protocol.mcp import Elicitor
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.network_report import NetworkReport
from codex_py.protocol.patched_file import OpenTexts
from codex_py.protocol.place import Place
from codex_py.protocol.settings import Choices
from codex_py.protocol.stream import ModelClient

if TYPE_CHECKING:
    from codex_py.process.process import SpawnOutside
    from codex_py.process.sessions import ProcessSessions

McpStartupWait: TypeAlias = Callable[
    [Callable[[], Sequence[str]], Awaitable[None]], Awaitable[None]
]
"""Waits for MCP servers to start, or for a limited time. Gets a function that lists the pending
ones, and an awaitable that completes when none are."""
Connect: TypeAlias = Callable[[Provider], ModelClient]
"""Makes the client with which the thread asks a given provider."""
OpenChild: TypeAlias = Callable[
    [Thread, NewChild, Config, str | None], AbstractAsyncContextManager[Session]
]
"""Opens a child of the thread, as `open_session` does, with this configuration. The last argument
is the id of a session to resume. The child gets the parent's `Inherited` features; its other
configured features are its own."""


class MakesFeature(Protocol):
    """Makes the feature of an extension: its options, or a table of the configuration."""

    place: ClassVar[Place]
    """The place of the feature among the others."""

    def feature(self, setup: "SessionSetup") -> Feature | None:
        """Make the feature of a session at the top; None if there is none.

        Raises:
            CodexError: the options or the settings contradict each other.
        """
        ...


@frozen
class SessionOptions:
    """The options with which a session is opened, besides its configuration."""

    source: Literal["exec", "cli", "mcp", "vscode"] = "exec"
    """The source in the session file; `vscode` stands for Codex's app server."""
    originator: str = "codex_exec"
    """The name of the program in the headers of requests and in the session file."""
    ephemeral: bool = False
    """Write no session file."""
    new_id: str | None = None
    """The id of a new thread; None makes one. No session file may have it."""
    resume: str | None = None
    """Id or name of the thread to continue."""
    resume_last: bool = False
    """Continue the newest session of this working directory and provider."""
    resume_all: bool = False
    """Let `resume_last` find the newest session of any working directory."""
    needs_own_worktree: bool = False
    """Raise an error, instead of continuing here, if the session to continue works in a git worktree
    of its own. It is set unless the user has chosen a folder."""
    parent: ParentThread | None = None
    """The parent, if the session is a child."""
    history: tuple[EncodedItem, ...] = ()
    """Items of the parent with which a new child begins, after its own context."""
    continued: ThreadState | None = None
    """The thread of an earlier session without a file, which this session continues. It has no file
    either."""
    fork: bool = False
    """Continue in a copy with a new id; with `resume` or `resume_last`."""
    choices: Choices | None = None
    """Choices that replace those from the configuration and `add_dirs`."""
    add_dirs: tuple[Path, ...] = ()
    """Absolute paths of writable roots besides those of the configuration."""
    transport: Any = None
    """An `httpx.AsyncBaseTransport` to use instead of the network, without a key. None: the
    network. If its attribute `is_recording` is true, its answers were made for another session."""
    wrap_transport: Callable[[Any], Any] | None = None
    """Gets the transport of the requests to the model, and returns the one to use. None changes
    nothing. Raises a `CodexError` if there can be no session."""
    stream_retries: int = 5
    """Retries of a stream that broke off or did not begin, unless the provider's settings give a
    number."""
    ignore_rules: bool = False
    """Ignore the files with rules for commands."""
    bypass_hook_trust: bool = False
    """Also run the hooks that the user has not reviewed."""
    cleared: bool = False
    """The conversation replaces another one on the same screen. Hooks are told."""
    keep_commands: bool = False
    """Keep commands running between turns. If False, they end with the turn, so that their items
    complete before it."""
    begins_with_call: bool = False
    """The resumed session continues with the call that waits at its end, before it sends a request."""
    may_add_servers: bool = False
    """The session may get MCP servers while it is open; see `McpFeature.reload`."""
    can_review: bool = False
    """The session may be asked for a review; see `Reviews`."""
    text_deltas: bool = True
    """Emit the text of answers and of reasoning while it streams. If nobody shows it, it is not
    even parsed."""
    open_texts: OpenTexts | None = None
    """The texts in the user's editor, which patches change instead of older ones on disk."""
    starts_outside: "Callable[[ProcessSessions], SpawnOutside] | None" = None
    """Gets the commands of the session, and returns what starts those that no limit of the sandbox
    holds for, for instance in terminals of the user's editor. None: they are our own processes."""
    leads_outside: bool = False
    """True: with `starts_outside`, commands that would run in the sandbox ask to leave it."""
    of_extensions: Sequence[MakesFeature] = ()
    """Options of extensions, which make their features."""
    logins: dict[Any, TokenSource] = field(
        default_factory=dict[Any, TokenSource], compare=False
    )
    """The renewed logins with ChatGPT that are in use, for all sessions with these options."""
    mcp_startup_wait: McpStartupWait | None = None
    """Delays a request until MCP servers have started, or for a limited time; None waits for all."""


@frozen
class SessionSetup:
    """The setup that the factories of features get."""

    config: Config
    options: SessionOptions
    environment: Mapping[str, str]
    approver: Approver | None
    """Decides what the approval policy leaves to the user; None if nobody can be asked."""
    elicitor: Elicitor
    """Answers the questions of MCP servers to the user."""
    warn: Callable[[str], None]
    """Shows the user a warning; each text once."""
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the user is asked, so that a session and its children ask one question at a time."""
    backend_problems: dict[str, str | None] = field(
        default_factory=dict[str, "str | None"]
    )
    """The findings of a session about the backends of the sandbox, for its children; see
    `PlatformSandbox`."""
    folder_times: FolderTimes = field(default_factory=FolderTimes)
    """The changes that the sandboxes of a session and its children make to folders, for its
    undo."""
    shell_snapshots: dict[Any, Any] = field(default_factory=dict[Any, Any])
    """What a session has found out about the user's login shell, for its children; see `LoginShell`."""
    network: NetworkReport = field(default_factory=NetworkReport)
    """Reports which hosts the commands of a session and its children could not reach."""
    connect: Connect | None = None
    """Makes a client of the thread for another provider. None before there is a thread; the factories
    of features have one."""
    open_child: OpenChild | None = None
    """Opens a child session of this one. None before there is a thread."""

    def unwritable_folders(self) -> Sequence[Path]:
        """Return the writable roots of the policy that the user has no permission to change.

        Roots that do not exist are left out.
        """
        policy = self.config.sandbox_policy(self.options.add_dirs)
        if policy.mode != "workspace-write":
            return ()
        # A root with an impossible name is missing, too.
        roots = [root for root in policy.writable_roots if os.path.isdir(root)]
        return [root for root in roots if not os.access(root, os.W_OK)]
