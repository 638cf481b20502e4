"""The features that a configuration turns on. Each is a line here, and is loaded only if it is on. LIGHT."""

from collections.abc import Callable, Sequence
from typing import Any

from codex_py.app.features.recovery import Recovery
from codex_py.app.features.tool_choice import ToolChoices
from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.protocol.extension import Extension, Feature
from codex_py.protocol.prompts import Note, UserPrompt


def configured_features(setup: SessionSetup) -> list[Feature]:
    """The features, the outermost first."""
    return [make(setup) for is_wanted, make in _FEATURES if is_wanted(setup)]


def _skills(setup: SessionSetup) -> Feature:
    """Adds the skills that a prompt mentions as `$name`."""

    async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
        if "$" not in prompt.text:
            # Most prompts mention none: nothing is loaded.
            return ()
        skills = load("codex_py.config.skills:find_skills")(setup.config, setup.environment)
        for warning in skills.warnings:
            setup.warn(warning)
        as_text = load("codex_py.config.skills:skill_message")
        return [Note(as_text(skill), "user") for skill in skills.mentioned(prompt.text)]

    return lambda _: Extension(before_prompt=before_prompt)


_FEATURES: Sequence[tuple[Callable[[SessionSetup], Any], Callable[[SessionSetup], Feature]]] = (
    (lambda _: True, _skills),
    (lambda _: True, ToolChoices),
    (
        lambda _: True,
        lambda setup: load("codex_py.app.features.turn_diff:TurnDiff")(setup.config.cwd),
    ),
    (
        lambda setup: setup.config.notify,
        lambda setup: load("codex_py.app.features.notify:TurnNotifier")(setup),
    ),
    (
        lambda setup: any(server.enabled for server in setup.config.mcp_servers.values()),
        lambda setup: load("codex_py.app.features.mcp:McpFeature")(setup),
    ),
    # The innermost: what the others wrap holds for every model.
    (lambda _: True, Recovery),
)
