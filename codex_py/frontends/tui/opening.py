"""Comes to the first session: trust in the folder, a missing key, the session that the command line names."""

from dataclasses import replace
from typing import Final

from codex_py.app.model import missing_key
from codex_py.app.options import SessionOptions
from codex_py.config.config import Config
from codex_py.config.paths import folders_between
from codex_py.config.project_trust import Changed, Unknown, trust_project
from codex_py.errors import CodexError
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.commands.sessions import pick_session
from codex_py.frontends.tui.conversation import Conversation
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.panel import yes_or_no
from codex_py.frontends.tui.panels import Panels
from codex_py.frontends.tui.surface import Launch, Surface
from codex_py.frontends.tui.transcript import Transcript
from codex_py.protocol.approval import ApprovalPolicy

_NO_KEY: Final = """\
{problem}

With a key, leave with Ctrl-D, set it, and start again.
With a model on this machine (or lmstudio):
    codex-py --oss --local-provider ollama
With another service, a [model_providers.NAME] table in
    {config}
Without any of them, to see how it works:
    codex-py demo"""
"""Narrow enough for 60 columns: no command is broken."""


async def open_first_session(
    conversation: Conversation, surface: Surface, transcript: Transcript, launch: Launch
) -> None:
    try:
        if await _settle_trust(conversation.config, surface.panels):
            conversation.config = launch.reload()
        config = conversation.config
        if (problem := missing_key(config, launch.environment)) is not None:
            transcript.notice(_NO_KEY.format(problem=problem, config=config.home / "config.toml"))
        options = await _options(conversation, surface, launch)
    except CodexError as error:
        transcript.error(str(error))
        options = None
    await conversation.open_first(options)


async def _options(
    conversation: Conversation, surface: Surface, launch: Launch
) -> SessionOptions | None:
    """The session that the command line names; None if the user picks none, and so leaves."""
    target = launch.target
    resume = target.resume
    if target.pick:
        resume = await pick_session(conversation, surface.panels, surface.screen)
        if resume is None:
            surface.leaving.leave()
            return None
    return replace(
        conversation.new_session(),
        resume=resume,
        resume_last=target.resume_last,
        resume_all=target.resume_all,
        fork=target.fork,
    )


async def _settle_trust(config: Config, panels: Panels) -> bool:
    """Ask whether this folder is trusted, if nobody has said so; True if the answer is a new yes.

    Raises:
        ConfigError: the answer cannot be saved.
    """
    trust = config.project_trust
    is_unasked = config.approval_policy is ApprovalPolicy.NEVER
    if is_unasked and config.sandbox_mode == "danger-full-access":
        # The agent may do all, whatever is answered: `--yolo`.
        return False
    if not isinstance(trust, Unknown | Changed):
        return False
    question: Fragments = [("bold", f"Do you trust what is in {printable(str(config.cwd))}?")]
    if isinstance(trust, Changed):
        question.append(("", "\n\nYou did, and these files have changed since:"))
    elif trust.files:
        question.append(("", "\n\nThese files in it name programs to run, or say what is allowed:"))
    else:
        question.append(("", "\n\nIf so, the agent may change files in it without asking."))
    question += [("", f"\n  {printable(str(path))}") for path in trust.files]
    no = "No, go on without: read only, and none of its settings"
    is_trusted = await panels.ask(
        lambda: yes_or_no(question, "Yes, trust it", no), about="Do you trust this folder?"
    )
    if is_trusted:
        trust_project(config.home, folders_between(config.project_root, config.cwd))
    return is_trusted
