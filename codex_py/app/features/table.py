"""The features that a configuration turns on. Each is a line here, and is loaded only if it is on. LIGHT."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from codex_py.app.features.tool_choice import ToolChoices
from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.config.hook_files import has_hooks
from codex_py.config.skill_folders import skill_folders
from codex_py.protocol.extension import Feature


@runtime_checkable
class Inherited(Protocol):
    """A feature that a child session has from its parent, whatever the child's configuration says."""

    def for_child(self, setup: SessionSetup) -> Feature:
        """The feature for a child with this setup; itself, if all of its state is shared."""
        ...


def configured_features(
    setup: SessionSetup, of_parent: Sequence[Feature | None] = ()
) -> list[Feature | None]:
    """The features by their place in the table, the outermost first; None for those that are off.

    `of_parent`: the features of the parent session, as returned here; empty if there is none.
    """
    return [
        its.for_child(setup)
        if isinstance(its, Inherited)
        else (make(setup) if is_wanted(setup) else None)
        for its, (is_wanted, make) in zip(
            of_parent or [None] * len(_FEATURES), _FEATURES, strict=True
        )
    ]


_FEATURES: Sequence[tuple[Callable[[SessionSetup], Any], Callable[[SessionSetup], Feature]]] = (
    (
        lambda setup: skill_folders(setup.config, setup.environment),
        lambda setup: load("codex_py.app.features.skills:SessionSkills")(setup),
    ),
    (lambda _: True, ToolChoices),
    (
        lambda _: True,
        lambda setup: load("codex_py.app.features.turn_diff:TurnDiff")(setup.config.cwd),
    ),
    # Outside of everything that changes files: it sees what a hook rewrote, and nothing of what a hook refused.
    (
        lambda setup: has_hooks(setup.config),
        lambda setup: load("codex_py.app.features.hooks:HooksFeature")(setup),
    ),
    (
        lambda setup: setup.config.notify,
        lambda setup: load("codex_py.app.features.notify:TurnNotifier")(setup),
    ),
    (
        lambda _: True,
        lambda setup: load("codex_py.app.features.plan_mode:PlanMode")(setup),
    ),
    (
        lambda setup: any(server.enabled for server in setup.config.mcp_servers.values()),
        lambda setup: load("codex_py.app.features.mcp:McpFeature")(setup),
    ),
)
