"""Routes what the user sends off: a prompt, a command of the terminal, or one for the shell."""

from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import Command, CommandContext, Commands
from codex_py.frontends.tui.compose.submission import Submission
from codex_py.frontends.tui.surface import Surface
from codex_py.protocol.prompts import Note


class Sending:
    def __init__(self, surface: Surface, context: CommandContext, commands: Commands) -> None:
        self._surface = surface
        self._context = context
        self._commands = commands

    def submitted(self, submission: Submission) -> None:
        """The user has sent off what the composer held."""
        conversation, line = self._context.conversation, submission.text
        if not line and not submission.images:
            if conversation.progress.offers_retry:
                conversation.retry()
            return
        session, composer = conversation.session, self._surface.composer
        composer.history.add(line, "" if session is None else session.thread_id)
        if line.startswith("!"):
            self._surface.tasks.start(self._run_shell(submission))
        elif not line.startswith("/"):
            conversation.send(submission)
        elif (found := self._commands.find(line)) is not None:
            self.run_command(*found)
        elif (problem := self._commands.unknown(line)) is not None:
            composer.set_text(line)
            self._surface.hints.show(problem)
        else:
            conversation.send(submission)

    def run_command(self, command: Command, argument: str = "") -> None:
        context = self._context
        if context.conversation.is_working and not command.while_working:
            self._surface.hints.show(
                f"/{command.name} has to wait for the end of the turn; Esc interrupts it"
            )
            return

        async def work() -> None:
            try:
                await command.run(context, argument)
            except CodexError as error:
                context.transcript.error(str(error))

        self._surface.tasks.create_task(work())

    async def _run_shell(self, submission: Submission) -> None:
        conversation, shell = self._context.conversation, self._context.shell
        command = submission.text[1:].strip()
        session = await conversation.opened()

        def tell(text: str) -> None:
            # Another one may have taken its place meanwhile.
            if conversation.session is session:
                session.tell(Note(text, "user"))

        if command and not shell.is_running:
            await shell.run(command, tell)
            return
        self._surface.composer.restore([submission])
        self._surface.hints.show(
            "a command is running; Esc stops it"
            if shell.is_running
            else "! runs a command of yours in your shell: !git status"
        )
