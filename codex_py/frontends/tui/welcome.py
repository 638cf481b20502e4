"""What comes before the first prompt: whether the folder is trusted, and whether there is a model to talk to."""

from typing import TYPE_CHECKING

from codex_py.app.model import missing_key
from codex_py.config.config import Config
from codex_py.config.paths import folders_between
from codex_py.config.project_trust import Changed, Unknown, trust_project
from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fragments import Fragments
from codex_py.frontends.tui.panel import Choice, Option
from codex_py.protocol.approval import ApprovalPolicy

if TYPE_CHECKING:
    from codex_py.frontends.tui.program import Terminal

_NO_KEY = """\
{problem}

With a key, leave with Ctrl-D, set it, and start again.
With a model on this machine (or lmstudio):
    codex-py --oss --local-provider ollama
With another service, a [model_providers.NAME] table in
    {config}
Without any of them, to see how it works:
    codex-py demo"""
"""Narrow enough for 60 columns: no command is broken."""


async def settle_trust(terminal: "Terminal") -> bool:
    """Ask whether this folder is trusted, if that is open; whether the answer was a new yes.

    Raises:
        ConfigError: the answer can not be written down.
    """
    config = terminal.config
    trust = config.project_trust
    if not isinstance(trust, Unknown | Changed) or _is_free(config):
        return False
    question: Fragments = [("bold", f"Do you trust what is in {printable(str(config.cwd))}?")]
    if isinstance(trust, Changed):
        question.append(("", "\n\nYou did, and these files have changed since:"))
    elif trust.files:
        question.append(("", "\n\nThese files in it name programs to run, or say what is allowed:"))
    else:
        question.append(("", "\n\nIf so, the agent may change files in it without asking."))
    question += [("", f"\n  {printable(str(path))}") for path in trust.files]
    is_trusted = await terminal.ask(
        lambda: Choice(
            question,
            [
                Option("Yes, trust it", True, "y"),
                Option("No, go on without: read only, and none of its settings", False, "n"),
            ],
            cancelled=False,
            default=1,
            put_off=terminal.panels.put_off,
        ),
        about="Do you trust this folder?",
    )
    if is_trusted:
        trust_project(config.home, folders_between(config.project_root, config.cwd))
    return is_trusted


def _is_free(config: Config) -> bool:
    """Whether the agent may do all, unasked, whatever is answered: `--yolo`."""
    is_unasked = config.approval_policy is ApprovalPolicy.NEVER
    return is_unasked and config.sandbox_mode == "danger-full-access"


def explain_missing_key(terminal: "Terminal") -> None:
    """Say in a few lines what to do, if no model can be reached without a key that is not there."""
    problem = missing_key(terminal.config, terminal.environment)
    if problem is not None:
        config = terminal.config.home / "config.toml"
        terminal.transcript.notice(_NO_KEY.format(problem=problem, config=config))
