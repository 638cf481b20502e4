"""What the user sends off: a prompt, a command of the terminal, or one for the shell."""

from typing import TYPE_CHECKING

from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.registry import Command
from codex_py.frontends.tui.composer import Submission

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal


class Sending:
    def __init__(self, terminal: "Terminal") -> None:
        self._terminal = terminal
        self._waiting: list[Submission] = []
        """Sent off before there was a session."""

    def begin(self, prompt: str) -> None:
        """Begin with the prompt of the command line, empty if there is none: no command, whatever it is."""
        if prompt:
            self._terminal.composer.history.add(prompt, "")
            self.send(Submission(prompt))

    def submitted(self, submission: Submission) -> None:
        """The user has sent off what the composer held."""
        terminal, line = self._terminal, submission.text
        if not line and not submission.images:
            if terminal.progress.offers_retry:
                terminal.retry()
            return
        session = terminal.conversation.session
        terminal.composer.history.add(line, "" if session is None else session.thread_id)
        if line.startswith("!"):
            terminal.start(self._run_shell(submission))
        elif not line.startswith("/"):
            self.send(submission)
        elif (found := terminal.commands.find(line)) is not None:
            self.run_command(*found)
        elif (problem := terminal.commands.unknown(line)) is not None:
            terminal.composer.set_text(line)
            terminal.hint(problem)
        else:
            self.send(submission)

    def send(self, submission: Submission) -> None:
        """Have the model told, now or as soon as it can be."""
        terminal = self._terminal
        if terminal.opening.is_under_way:
            self._waiting.append(submission)
            return
        if terminal.conversation.session is None:
            terminal.composer.restore([submission])
            terminal.hint(
                "not sent: there is no conversation; /new begins one, /resume goes on with one"
            )
            return
        if not terminal.conversation.is_working:
            terminal.progress.prompt(submission)
        terminal.conversation.submit(submission, terminal.tasks)
        terminal.screen.changed()

    def send_waiting(self) -> None:
        """There is a session now."""
        waiting, self._waiting = self._waiting, []
        for submission in waiting:
            self.send(submission)

    def give_back_waiting(self) -> None:
        """The session that it was for could not be opened: what was to be sent is the composer's again."""
        if waiting := self._waiting:
            self._waiting = []
            self._terminal.composer.restore(waiting)

    def run_command(self, command: Command, argument: str) -> None:
        terminal = self._terminal
        if terminal.conversation.is_working and not command.while_working:
            terminal.hint(f"/{command.name} has to wait for the end of the turn; Esc interrupts it")
            return

        async def work() -> None:
            try:
                await command.run(terminal, argument)
            except CodexError as error:
                terminal.transcript.error(str(error))

        terminal.tasks.create_task(work())

    async def _run_shell(self, submission: Submission) -> None:
        terminal, command = self._terminal, submission.text[1:].strip()
        session = await terminal.opening.session()

        def tell(text: str) -> None:
            # Another one may have taken its place meanwhile.
            if terminal.conversation.session is session:
                session.tell(text)

        if command and not terminal.shell.is_running:
            await terminal.shell.run(command, tell)
            return
        terminal.composer.restore([submission])
        terminal.hint(
            "a command is running; Esc stops it"
            if terminal.shell.is_running
            else "! runs a command of yours in your shell: !git status"
        )
