"""The half of the terminal that the first frame does not need: sessions, cells, commands."""

from collections.abc import Awaitable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from rich.console import RenderableType

from codex_py.app.model import missing_key
from codex_py.app.options import SessionOptions
from codex_py.app.slash_commands import own_slash_commands, slash_command_names
from codex_py.app.views.command_script import script_of
from codex_py.config.config import Config
from codex_py.config.custom_prompts import find_custom_prompts
from codex_py.config.declared.section import raw
from codex_py.config.paths import folders_between
from codex_py.config.project_trust import Changed, Trusted, trust_project
from codex_py.errors import CodexError, nearest
from codex_py.frontends.tui.approval import TerminalApprover
from codex_py.frontends.tui.cells.layout import one_line
from codex_py.frontends.tui.commands.added import AddedCommands
from codex_py.frontends.tui.commands.elsewhere import ELSEWHERE
from codex_py.frontends.tui.commands.hooks import HOOKS, settle_hooks
from codex_py.frontends.tui.commands.program import PROGRAM, PROMPTS, custom_command
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.commands.review import REVIEW
from codex_py.frontends.tui.commands.rewind import REWIND
from codex_py.frontends.tui.commands.sessions import SESSIONS
from codex_py.frontends.tui.commands.settings import SETTINGS
from codex_py.frontends.tui.commands.undoing import UNDOING
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.first_run import first_run, is_first_run
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.overlay import Overlays
from codex_py.frontends.tui.panel import Postponed, yes_or_no
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.questions import TerminalElicitor
from codex_py.frontends.tui.render import Renderer
from codex_py.frontends.tui.session_picker import pick_session
from codex_py.frontends.tui.shell import UserShell, changes_shell_alone
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.frontends.tui.theme import Theme
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.prompts import Note
from codex_py.protocol.stream import Usage
from codex_py.streams.terminal import printable

_NO_KEY: Final = """\
{problem}

With a key, leave with Ctrl-D, set it, and start again.
With a model on this machine (or lmstudio):
    codex-py --oss --local-provider ollama
With another service, a [model_providers.NAME] table in
    {config}
Without any of them, to see how it works:
    codex-py demo"""
"""A message narrow enough for 60 columns, so that no command is broken."""
_ANEW: Final = (
    "Each ! command starts in the folder of the conversation, in a shell of its own"
)
_LEAVING_WORDS: Final = frozenset({"quit", "exit", ":q", ":q!", ":qa", ":wq", ":x"})
"""Whole prompts that are meant for a shell or an editor; they are not sent to a model."""


_BUILT_IN: Final = (
    *SETTINGS,
    *HOOKS,
    *UNDOING,
    *REWIND,
    *SESSIONS,
    *REVIEW,
    *PROMPTS,
    *PROGRAM,
)
"""The slash commands, in the order in which they are listed."""


class SessionHalf:
    """Holds the session, the transcript and the commands; the one `SessionInterface`."""

    def __init__(self, ui: TerminalUI) -> None:
        screen = ui.screen
        launch = ui.launch
        self._ui = ui
        fold_key = ui.keymap.named(" ({global.open_transcript})")
        self._renderer = Renderer(screen.theme, fold_key)
        screen.theme_changed = self._use_theme
        self._transcript = Transcript(
            self._renderer,
            self._print,
            changed=screen.changed,
            show_reasoning=not launch.config.settings.hide_agent_reasoning,
        )
        overlays = Overlays(ui, self._renderer)
        unused = ui.keymap.without_effect
        if unused:
            self._transcript.notice(f"Without effect here: {', '.join(unused)}")
        self._conversation = Conversation(
            ui,
            self._transcript,
            approver=TerminalApprover(ui.panels, self._transcript, screen, overlays),
            elicitor=TerminalElicitor(ui.panels),
        )
        self._shell = UserShell(
            launch.config, launch.environment, screen, self._conversation.monitor
        )
        self._of_program: list[SlashCommand] = []
        self._of_user: list[SlashCommand] = []
        self._added = AddedCommands(
            lambda text: self._transcript.notice(text, "warning")
        )
        self._by_name: dict[str, SlashCommand] = {}
        self._faults: set[str] = set()
        self._find_commands()
        self._context = CommandContext(
            ui, self._conversation, self._transcript, self._shell, overlays
        )
        self._send_prompt_of_launch()

    def _use_theme(self, theme: Theme) -> None:
        self._renderer.theme = theme

    def _print(self, cell: RenderableType, space: bool) -> None:
        """Print a finished cell. `space`: an empty row stands before it."""
        text = self._renderer.text(cell, self._ui.screen.width)
        self._ui.screen.print(f"\n{text}" if space else text)

    def _send_prompt_of_launch(self) -> None:
        """Send the prompt of the command line as it is, even if it looks like a command."""
        composer = self._ui.composer
        images = self._ui.launch.images
        prompt = self._ui.launch.target.prompt
        if prompt:
            composer.history.add(prompt, "")
            labels = "".join(f"[Image #{n}] " for n in range(1, len(images) + 1))
            self._conversation.send(Submission(labels + prompt, images))
        elif images:
            composer.attach(images)

    def live(self, width: int, max_rows: int) -> list[Fragments]:
        agents = self._conversation.monitor.agent_rows(width)
        cells = self._transcript.live(width, max_rows - len(agents))
        return [*cells, *agents]

    def _find_commands(self) -> None:
        """List the commands: our own, whose features are on, and the user's custom prompts."""
        config = self._conversation.config
        on = raw(config.features)
        self._of_program = []
        self._of_user = []
        self._by_name = {}
        for command in _BUILT_IN:
            for name in (command.name, *command.aliases):
                self._by_name[name] = command
            if not command.feature or on.get(command.feature):
                help_text = self._ui.keymap.named(command.help)
                self._of_program.append(replace(command, help=help_text))
        prompts = find_custom_prompts(config, self._ui.launch.environment)
        taken = {*self._by_name, *own_slash_commands()}
        for prompt in prompts.found:
            command = custom_command(prompt, taken)
            self._of_user.append(command)
            self._by_name |= dict.fromkeys((command.name, *command.aliases), command)
            taken |= {command.name, *command.aliases}
        for warning in prompts.warnings:
            if warning not in self._faults:
                self._faults.add(warning)
                self._transcript.notice(warning)

    @property
    def commands(self) -> list[SlashCommand]:
        """All commands, in the order of the list. Those of extensions are loaded for it."""
        added = self._added.listed(self._by_name)
        return [*self._of_program, *added, *self._of_user]

    @property
    def is_working(self) -> bool:
        return self._conversation.is_working or self._shell.is_running

    def submitted(self, submission: Submission) -> None:
        conversation = self._conversation
        line = submission.text
        if not line and not submission.images:
            session = conversation.session
            if session is not None and conversation.monitor.offers_retry:
                conversation.run(session.retry)
            return
        self._ui.composer.history.add(line, self._thread_id)
        if line.lower() in _LEAVING_WORDS and not submission.images:
            self._leave_by_word(line)
        elif line.startswith("!"):
            self._ui.start(self._run_shell(submission))
        elif line.startswith("/"):
            self._submitted_command(submission)
        else:
            conversation.send(submission)

    def _submitted_command(self, submission: Submission) -> None:
        """Run the command that a line names, or send the line if it cannot be a command."""
        line = submission.text
        name, _, argument = line.removeprefix("/").partition(" ")
        command = self._by_name.get(name)
        if command is None:
            try:
                command = self._added.named(name)
            except CodexError as error:
                self._transcript.notice(str(error), "error")
                return
        if command is not None:
            self._run(command, argument.strip(), line)
            return
        words = line.removeprefix("/").split()
        name = words[0] if words else ""
        if "/" in name or "\n" in line:
            # A path such as `/etc/hosts is wrong` is not a command.
            self._conversation.send(submission)
            return
        # The line is not put back: text that is typed next would be a part of it.
        meant = ""
        near = nearest(name, [*self._by_name, *slash_command_names()])
        if name in ELSEWHERE:
            meant = f" {ELSEWHERE[name]}"
        elif near is not None:
            meant = f" Did you mean /{near}?"
        back = self._ui.keymap.named(" ({editor.move_up} brings it back)")
        self._ui.hints.show(printable(f"no command /{name}.{meant}{back}"))

    @property
    def _thread_id(self) -> str:
        """The id of the open session; empty if there is none."""
        session = self._conversation.session
        if session is None:
            return ""
        return session.thread_id

    def _leave_by_word(self, word: str) -> None:
        if self.is_working:
            self._give_back(word)
            self._ui.hints.show("the agent works: /quit leaves all the same")
        else:
            self.run_command("quit")

    def run_command(self, name: str) -> None:
        self._run(self._by_name[name], "")

    def interrupt(self) -> bool:
        return self._conversation.interrupt()

    async def begin(self) -> None:
        conversation = self._conversation
        launch = self._ui.launch
        options = None
        try:
            if await _settle_trust(conversation.config, self._ui.panels):
                conversation.config = launch.reload()
                self._find_commands()
            await settle_hooks(self._context)
            config = conversation.config
            problem = missing_key(config, launch.environment)
            if problem is not None and not launch.is_unattended:
                await self._without_key(problem, config)
            options = await self._options()
        except CodexError as error:
            self._transcript.notice(str(error), "error")
        await conversation.open_and_settle(options)

    async def _without_key(self, problem: str, config: Config) -> None:
        """Let the user choose a model on the first run; else say how to get a key."""
        launch = self._ui.launch
        try:
            if is_first_run(config, launch.environment):
                has_changed = await first_run(self._ui, config, self._transcript)
                if has_changed:
                    self._conversation.config = launch.reload()
                    return
        except CodexError as error:
            self._transcript.notice(str(error), "error")
        path = config.home / "config.toml"
        self._transcript.notice(_NO_KEY.format(problem=problem, config=path))

    async def close(self) -> str:
        farewell = self._farewell()
        self._keep_draft()
        await self._shell.aclose()
        await self._conversation.close()
        return farewell

    def _keep_draft(self) -> None:
        """Add unsent text to the history, which brings it back in the next session too."""
        composer = self._ui.composer
        draft = composer.text.strip()
        if draft:
            composer.history.add(draft, self._thread_id)

    def _run(
        self,
        command: SlashCommand,
        argument: str,
        line: str = "",
    ) -> None:
        """Run a command. `line`: the written text, which is put back if the command is refused."""
        if self._conversation.is_working and not command.while_working:
            self._give_back(line)
            self._ui.hints.show(
                f"/{command.name} has to wait for the end of the turn;"
                f" {self._ui.status.stop_key} interrupts it"
            )
            return

        async def work(running: Awaitable[None]) -> None:
            with self._shown_errors(line), suppress(Postponed):
                await running

        with self._shown_errors(line):
            running = command.run(self._context, argument)
            self._ui.tasks.create_task(work(running))

    @contextmanager
    def _shown_errors(self, line: str) -> Generator[None]:
        """Show a `CodexError` as a notice; put the line back if it was written wrongly."""
        try:
            yield
        except CodexError as error:
            if error.code == "usage":
                self._give_back(line)
            self._transcript.notice(str(error), "error")

    def _give_back(self, line: str) -> None:
        if line and not self._ui.composer.buffer.text:
            self._ui.composer.set_text(line)

    async def _run_shell(self, submission: Submission) -> None:
        """Run the command of the user after the `!`, or give the line back."""
        conversation = self._conversation
        shell = self._shell
        command = submission.text[1:].strip()
        session = await conversation.opened()

        def tell(text: str) -> None:
            # Another session may have taken its place meanwhile.
            if conversation.session is session:
                session.tell(Note(text, "user"))

        if command and not shell.is_running:
            typed = await shell.run(command, tell)
            if typed:
                # As a shell keeps it for its next prompt; but nobody has seen this one yet.
                self._ui.composer.paste(typed)
            if changes_shell_alone(command):
                self._transcript.notice(_ANEW)
            return
        self._ui.composer.restore([submission])
        hint = "! runs a command of yours in your shell: !git status"
        if shell.is_running:
            hint = f"a command is running; {self._ui.status.stop_key} stops it"
        self._ui.hints.show(hint)

    async def _options(self) -> SessionOptions | None:
        """The options of the session that the command line names.

        None if the user picks no session, and so leaves.
        """
        target = self._ui.launch.target
        resume = target.resume
        if target.pick:
            resume = await pick_session(self._conversation, self._ui)
            if resume is None:
                self._ui.leaving.leave()
                return None
        return replace(
            self._conversation.new_session(),
            resume=resume,
            resume_last=target.resume_last,
            resume_all=target.resume_all,
            fork=target.fork,
            needs_own_worktree=self._ui.launch.needs_own_worktree,
        )

    def _farewell(self) -> str:
        """The commands that leaving ends, and the session if anything was said in it."""
        shell = self._ui.screen.theme.shell
        scripts = [
            one_line(script_of(command, shell), 100)
            for command, _ in self._ui.status.commands.values()
        ]
        ended = ""
        if scripts:
            ended = f"\nCommands that were ended: {'; '.join(scripts)}\n"
        session = self._conversation.session
        is_unattended = self._ui.launch.is_unattended
        if session is None or not session.has_begun or is_unattended:
            return ended
        used = Usage()
        if "used-tokens" in self._ui.status.known:
            used = session.token_usage.total
        if not session.is_kept:
            # A session that was not kept cannot be continued.
            return f"{ended}\n{used_tokens(used)}"
        return ended + farewell(session.thread_id, used)


def farewell(thread_id: str, used: Usage) -> str:
    """The tokens that were used, and the command to continue the session, for the shell."""
    # On a line of its own the command is not broken in a narrow terminal.
    how = f"To continue this session, run:\n  codex-py resume {thread_id}\n"
    return f"\n{used_tokens(used)}{how}"


def used_tokens(used: Usage) -> str:
    """The line about the tokens that were used; empty if none were."""
    if not used.total_tokens:
        return ""
    return (
        f"Token usage: total={used.total_tokens:,} input={used.input_tokens:,}"
        f" (+ {used.cached_input_tokens:,} cached) output={used.output_tokens:,}\n"
    )


async def _settle_trust(config: Config, panels: Panels) -> bool:
    """Ask whether the folder is trusted, unless it is known; True if the answer is a new yes."""
    trust = config.project_trust
    is_unasked = config.approval_policy is ApprovalPolicy.NEVER
    if is_unasked and config.sandbox_mode == "danger-full-access":
        # With `--yolo` the agent may do everything, whatever the answer.
        return False
    if config.trust == "untrusted" or isinstance(trust, Trusted):
        return False
    question: Fragments = [
        ("bold", f"Do you trust what is in {printable(str(config.cwd))}?")
    ]
    if isinstance(trust, Changed):
        question.append(("", "\n\nYou did, and these files have changed since:"))
    elif trust.files:
        question.append(
            ("", "\n\nThese files in it name programs to run, or say what is allowed:")
        )
    else:
        question.append(
            ("", "\n\nIf so, the agent may change files in it without asking.")
        )
    question += [("", f"\n  {printable(str(path))}") for path in trust.files]
    no = "No, go on without: read only, and none of its settings"
    is_trusted = await panels.ask(
        lambda: yes_or_no(question, "Yes, trust it", no),
        about="Do you trust this folder?",
    )
    if is_trusted:
        trust_project(config.home, folders_between(config.project_root, config.cwd))
    return is_trusted
