"""The features that a configuration turns on. Each is a line here, and is loaded only if it is on. LIGHT."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from codex_py.app.features.tool_choice import ToolChoices
from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.config.definition_folders import skill_folders
from codex_py.config.hook_files import has_hooks
from codex_py.protocol.dispatch import Dispatch
from codex_py.protocol.extension import Extension, Feature, Occasion, Thread
from codex_py.protocol.prompts import Note


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


def _nested_agents_md(setup: SessionSetup) -> Feature:
    """Tells the instructions of other folders. Loaded with the tools: only their calls lead there."""

    def feature(thread: Thread) -> Extension:
        def wrap_dispatch(inner: Dispatch) -> Dispatch:
            nested = load("codex_py.app.features.nested_agents_md:NestedAgentsMd")(setup, thread)
            return nested.wrap_dispatch(inner)

        def context(occasion: Occasion) -> Sequence[Note]:
            if occasion != "compact":
                return ()
            return load("codex_py.app.features.nested_agents_md:nested_notes")(thread.items)

        return Extension(wrap_dispatch=wrap_dispatch, context=context)

    return feature


def _loop_guard(_: SessionSetup) -> Feature:
    """Stops a model that repeats itself. Loaded with the tools: only their calls repeat."""

    def feature(thread: Thread) -> Extension:
        guards: list[Any] = []

        def wrap_dispatch(inner: Dispatch) -> Dispatch:
            guards.append(load("codex_py.app.features.loop_guard:LoopGuard")(thread))
            return inner

        async def before_request() -> Sequence[Note]:
            return guards[0].before_request() if guards else ()

        return Extension(wrap_dispatch=wrap_dispatch, before_request=before_request)

    return feature


def _has_agents(setup: SessionSetup) -> bool:
    agents = setup.config.values.get("agents", {})
    return (
        setup.config.features.get("multi_agent") is not False and agents.get("enabled") is not False
    )


_FEATURES: Sequence[tuple[Callable[[SessionSetup], Any], Callable[[SessionSetup], Feature]]] = (
    (
        lambda setup: skill_folders(setup.config, setup.environment),
        lambda setup: load("codex_py.app.features.skills:SessionSkills")(setup),
    ),
    (lambda _: True, ToolChoices),
    # Outside of everything that changes files: it sees what a hook rewrote, and nothing of what a hook refused.
    (
        lambda setup: has_hooks(setup.config),
        lambda setup: load("codex_py.app.features.hooks:HooksFeature")(setup),
    ),
    (lambda _: True, lambda setup: load("codex_py.app.features.undo:Undo")(setup)),
    (lambda setup: setup.config.project_doc_max_bytes > 0, _nested_agents_md),
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
    # The innermost: a call that another feature refuses does not wait for its turn.
    (_has_agents, lambda setup: load("codex_py.app.features.agents.feature:SubAgents")(setup)),
    # Inside of the features that add to a request.
    (
        lambda setup: setup.config.budget.is_limited,
        lambda setup: load("codex_py.app.features.budget:BudgetFeature")(setup),
    ),
    (lambda setup: setup.config.budget.loop_guard, _loop_guard),
)
