"""The half of the terminal that the first frame does not need, and all that it imports: sessions, cells, commands."""

from codex_py.frontends.tui.approval import TerminalApprover
from codex_py.frontends.tui.commands.changes import CHANGES
from codex_py.frontends.tui.commands.mcp import MCP
from codex_py.frontends.tui.commands.program import PROGRAM
from codex_py.frontends.tui.commands.prompts import PROMPTS, custom_commands
from codex_py.frontends.tui.commands.registry import CommandContext, Commands
from codex_py.frontends.tui.commands.sessions import SESSIONS
from codex_py.frontends.tui.commands.settings import SETTINGS
from codex_py.frontends.tui.compose.submission import Submission
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.elicitation import TerminalElicitor
from codex_py.frontends.tui.opening import open_first_session
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.sending import Sending
from codex_py.frontends.tui.shell import UserShell
from codex_py.frontends.tui.surface import Launch, Surface
from codex_py.frontends.tui.transcript import Transcript


class Loaded:
    """A `LoadedHalf`."""

    def __init__(self, surface: Surface, launch: Launch) -> None:
        screen = surface.screen
        self._surface = surface
        self._launch = launch
        self._transcript = Transcript(
            Renderer(screen.theme),
            print_lines=screen.print,
            changed=screen.changed,
            width=lambda: screen.width,
            show_reasoning=not launch.config.hide_agent_reasoning,
        )
        self._conversation = Conversation(
            surface,
            self._transcript,
            launch,
            approver=TerminalApprover(surface.panels, self._transcript, screen),
            elicitor=TerminalElicitor(surface.panels),
        )
        self._shell = UserShell(launch.config, launch.environment, self._conversation.progress)
        own = custom_commands(launch.config.home)
        self._commands = Commands([*SETTINGS, *MCP, *CHANGES, *SESSIONS, *PROMPTS, *PROGRAM, *own])
        context = CommandContext(
            commands=self._commands,
            conversation=self._conversation,
            transcript=self._transcript,
            shell=self._shell,
            safe_environment=surface.safe_environment,
            screen=screen,
            status=surface.status,
            composer=surface.composer,
            skills=surface.skills,
            panels=surface.panels,
            hint=surface.hints.show,
            leave=surface.leaving.leave,
        )
        self._sending = Sending(surface, context, self._commands)
        self.commands = self._commands.all
        self.live = self._transcript.live
        if prompt := launch.target.prompt:
            # As it is, even if it looks like a command.
            surface.composer.history.add(prompt, "")
            self._conversation.send(Submission(prompt))

    @property
    def is_working(self) -> bool:
        return self._conversation.is_working or self._shell.is_running

    def submitted(self, submission: Submission) -> None:
        self._sending.submitted(submission)

    def run_command(self, name: str) -> None:
        found = self._commands.find(f"/{name}")
        assert found is not None
        self._sending.run_command(*found)

    def interrupt(self) -> bool:
        return self._shell.stop() or self._conversation.interrupt()

    async def begin(self) -> None:
        await open_first_session(self._conversation, self._surface, self._transcript, self._launch)

    async def close(self) -> str:
        farewell = self._farewell()
        await self._shell.aclose()
        await self._conversation.close()
        return farewell

    def _farewell(self) -> str:
        """How to continue the session; empty if nothing was said in it."""
        session = self._conversation.session
        if session is None or not session.has_begun:
            return ""
        used = session.token_usage.total
        tokens = (
            f"Token usage: total={used.total_tokens:,} input={used.input_tokens:,}"
            f" (+ {used.cached_input_tokens:,} cached) output={used.output_tokens:,}\n"
            if "used-tokens" in self._surface.status.known and used.total_tokens
            else ""
        )
        return f"{tokens}To continue this session, run: codex-py resume {session.thread_id}\n"
