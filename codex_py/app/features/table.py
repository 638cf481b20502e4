"""The features that a configuration asks for. A feature is loaded when it is, and one line here. LIGHT."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from codex_py.app.options import SessionSetup
from codex_py.protocol.extension import Extension, Feature
from codex_py.protocol.prompts import Note, UserPrompt


def load(name: str) -> Any:
    """A module of `codex_py.app` that few sessions need."""
    path = f"codex_py.app.{name}"
    # `import_module` would not be seen by `-X importtime`, by which a test knows what is loaded when.
    __import__(path)
    return sys.modules[path]


def configured_features(setup: SessionSetup) -> list[Feature]:
    """In the order of their extensions, the outermost first."""
    return [make(setup) for is_wanted, make in _FEATURES if is_wanted(setup)]


def _skills(setup: SessionSetup) -> Feature:
    async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
        # Few prompts mention one.
        return load("features.skills").mentioned(setup, prompt.text) if "$" in prompt.text else ()

    return lambda _: Extension(before_prompt=before_prompt)


_FEATURES: Sequence[tuple[Callable[[SessionSetup], Any], Callable[[SessionSetup], Feature]]] = (
    (lambda _: True, _skills),
    (lambda _: True, lambda setup: load("features.turn_diff").TurnDiff(setup.config.cwd)),
    (lambda setup: setup.config.notify, lambda setup: load("features.notify").TurnNotifier(setup)),
    (
        lambda setup: any(server.enabled for server in setup.config.mcp_servers.values()),
        lambda setup: load("features.mcp").McpFeature(setup),
    ),
)
