"""Coming to a session: the first one, that of the command line, and any that takes its place."""

import asyncio
import gc
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.arguments import TerminalTarget
from codex_py.frontends.tui.patience import Patience
from codex_py.frontends.tui.theme import Theme

if TYPE_CHECKING:
    # The first frame does not need it.
    from codex_py.app.session import SessionOptions
    from codex_py.core.session import Session
    from codex_py.frontends.tui.program import Terminal

_LATER: Final = (
    "codex_py.app.session",
    "codex_py.frontends.tui.transcript",
    "codex_py.frontends.tui.approval",
    "codex_py.frontends.tui.elicitation",
    "codex_py.frontends.tui.commands.builtin",
    "codex_py.frontends.tui.commands.custom",
)
"""What a session needs, and the first frame does not."""
_STREAM_RETRIES: Final = 10
"""These take more than two minutes: somebody is there who can interrupt them, and networks come back."""
_REHEARSED: Final = "A `word`:\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| c | d |\n"
"""To render it loads what most answers need: the parser, a lexer, tables."""


class Opening:
    """
    Args:
        target: what the program begins with.
        add_dirs: writable roots beside those of the configuration; absolute.
        reload: reads the configuration again.
    """

    def __init__(
        self,
        terminal: "Terminal",
        target: TerminalTarget,
        *,
        add_dirs: tuple[Path, ...],
        reload: Callable[[], Config],
    ) -> None:
        self._terminal = terminal
        self._target = target
        self.add_dirs = add_dirs
        self._reload = reload
        self._settled = asyncio.Event()
        self.patience = Patience(terminal.status, lambda: terminal.screen.changed())

    @property
    def is_under_way(self) -> bool:
        """A session is about to be open: what is sent meanwhile is for that one."""
        return not self._settled.is_set()

    async def session(self) -> "Session":
        """The session that is open, or is about to be.

        Raises:
            CodexError: there is none.
        """
        await self._settled.wait()
        if (session := self._terminal.conversation.session) is None:
            problem = "there is no conversation; /new begins one, /resume goes on with one"
            raise CodexError(problem, code="no_session")
        return session

    async def begin(self) -> None:
        """Open the first session, when it is settled whether the folder is trusted."""
        try:
            await self._begin()
        except CodexError as error:
            self._terminal.transcript.error(str(error))
        finally:
            self._settled.set()
            self._terminal.sending.give_back_waiting()

    async def _begin(self) -> None:
        terminal = self._terminal
        # While the first frame is looked at.
        await asyncio.to_thread(_load, _LATER)
        gc.enable()
        from codex_py.frontends.tui.welcome import explain_missing_key, settle_trust  # noqa: PLC0415

        if await settle_trust(terminal):
            terminal.config = self._reload()
        explain_missing_key(terminal)
        target = self._target
        options = replace(
            self.new_session(),
            resume=target.resume,
            resume_last=target.resume_last,
            resume_all=target.resume_all,
            fork=target.fork,
        )
        if target.pick:
            from codex_py.frontends.tui.commands.sessions import pick_session  # noqa: PLC0415

            picked = await pick_session(terminal)
            if picked is None:
                terminal.leave()
                return
            options = replace(options, resume=picked)
        await self._open(options)

    def new_session(self) -> "SessionOptions":
        """Options for a session that begins anew, with what the user has chosen for the one before."""
        from codex_py.app.session import SessionOptions  # noqa: PLC0415

        session = self._terminal.conversation.session
        return SessionOptions(
            source="cli",
            originator="codex-tui",
            choices=None if session is None else session.settings.choices,
            add_dirs=self.add_dirs,
            stream_retries=_STREAM_RETRIES,
        )

    async def open(self, options: "SessionOptions") -> None:
        """Go on with another session. If it cannot be opened, the user is told why, and goes on with this one."""
        await self._settled.wait()
        self._settled.clear()
        await self._open(options)

    async def _open(self, options: "SessionOptions") -> None:
        from codex_py.app.past_items import thread_items  # noqa: PLC0415
        from codex_py.frontends.tui.approval import TerminalApprover  # noqa: PLC0415
        from codex_py.frontends.tui.elicitation import TerminalElicitor  # noqa: PLC0415

        terminal = self._terminal
        try:
            session = await terminal.conversation.open(
                terminal.config,
                options,
                approver=TerminalApprover(terminal),
                elicitor=TerminalElicitor(terminal),
                patience=self.patience,
            )
        except CodexError as error:
            terminal.transcript.error(str(error))
            terminal.sending.give_back_waiting()
            return
        finally:
            self._settled.set()
        terminal.progress.begin(session, thread_items(session.earlier))
        terminal.start(self._look_around())
        terminal.sending.send_waiting()

    async def find_branch(self) -> None:
        from codex_py.rollout.git_info import git_info  # noqa: PLC0415

        info = await asyncio.to_thread(git_info, self._terminal.config.cwd)
        self._terminal.status.branch = info.get("branch", "")
        self._terminal.screen.changed()

    async def _look_around(self) -> None:
        """Read what is in the files of the user and of the project, in threads."""
        await self.find_branch()
        await self._terminal.composer.begin(self._terminal.config)
        # The first answer would have to wait for it, and what is typed meanwhile as well.
        await asyncio.to_thread(_rehearse, self._terminal.theme)


def _load(modules: tuple[str, ...]) -> None:
    for name in modules:
        import_module(name)


def _rehearse(theme: Theme) -> None:
    """Render a short answer for nobody."""
    from codex_py.frontends.tui.markdown import markdown  # noqa: PLC0415
    from codex_py.frontends.tui.render import Renderer  # noqa: PLC0415

    Renderer(theme).text(markdown(_REHEARSED, theme), 80)
