"""The features that a configuration turns on. Each is a line here, and is loaded only if it is on. LIGHT."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from codex_py.app.features.otel.settings import has_exporter
from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.config.definition_folders import skill_folders
from codex_py.config.hook_files import has_hooks
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
        else (load(target)(setup) if is_wanted(setup) else None)
        for its, (is_wanted, target) in zip(
            of_parent or [None] * len(_FEATURES), _FEATURES, strict=True
        )
    ]


def _has_agents(setup: SessionSetup) -> bool:
    agents = setup.config.values.get("agents", {})
    return (
        setup.config.features.get("multi_agent") is not False and agents.get("enabled") is not False
    )


def _has_goals(setup: SessionSetup) -> bool:
    # Clients of an app server set goals unasked; elsewhere the tools would be a cost of every request.
    wanted = setup.config.features.get("goals", setup.options.source == "vscode")
    return wanted and setup.options.parent is None


_FEATURES: Sequence[tuple[Callable[[SessionSetup], Any], str]] = (
    (
        lambda setup: setup.config.files.denies and setup.options.parent is None,
        "codex_py.app.features.denied_files:DeniedFiles",
    ),
    (lambda setup: "log_file" in setup.config.values, "codex_py.app.features.debug_log:DebugLog"),
    # Around all others, as is the next: they see each call from its start to its end.
    (
        lambda setup: has_exporter(setup.config.values.get("otel", {})),
        "codex_py.app.features.otel.spans:Telemetry",
    ),
    (lambda setup: setup.options.suspension, "codex_py.app.features.suspension:SuspendedApprovals"),
    # Around all that may change files.
    (
        lambda setup: setup.options.bundle is not None and setup.options.parent is None,
        "codex_py.app.features.change_bundle:ChangeBundle",
    ),
    (
        lambda setup: (
            setup.config.features.get("skills") is not False
            and skill_folders(setup.config, setup.environment)
        ),
        "codex_py.app.features.skills:SessionSkills",
    ),
    # Outside of all that counts and changes requests: a review sends none.
    (
        lambda setup: setup.options.can_review and setup.options.parent is None,
        "codex_py.app.features.reviews:Reviews",
    ),
    (lambda _: True, "codex_py.app.features.tool_choice:ToolChoices"),
    # Outside of everything that changes files: it sees what a hook rewrote, and nothing of what a hook refused.
    (lambda setup: has_hooks(setup.config), "codex_py.app.features.hooks.feature:HooksFeature"),
    # Behind the hooks, which decide about an approval first.
    (
        lambda setup: setup.config.values.get("approvals_reviewer", "user") != "user",
        "codex_py.app.features.approval_review:ApprovalReviewer",
    ),
    # Behind the hooks: it is asked when they want no more. Around the record of changes, which it looks at.
    (
        lambda setup: (
            setup.config.gates.is_any
            and setup.options.source == "exec"
            and setup.options.parent is None
        ),
        "codex_py.app.features.gates.feature:Gates",
    ),
    # Behind the hooks and the gates, which have a word about the result first.
    (_has_goals, "codex_py.app.features.goals:Goals"),
    (lambda _: True, "codex_py.app.features.turn_changes:TurnChanges"),
    (
        lambda setup: setup.config.project_doc_max_bytes > 0,
        "codex_py.app.features.nested_agents_md:NestedAgentsMd",
    ),
    (lambda setup: setup.config.notify, "codex_py.app.features.notify:TurnNotifier"),
    (lambda _: True, "codex_py.app.features.plan_mode:PlanMode"),
    (
        lambda setup: any(server.enabled for server in setup.config.mcp_servers.values()),
        "codex_py.app.features.mcp:McpFeature",
    ),
    # The innermost: a call that another feature refuses does not wait for its turn.
    (_has_agents, "codex_py.app.features.agents.feature:SubAgents"),
    # Inside of the features that add to a request.
    (lambda setup: setup.config.budget.is_limited, "codex_py.app.features.budget:BudgetFeature"),
    (lambda setup: setup.config.budget.loop_guard, "codex_py.app.features.loop_guard:LoopGuard"),
)
"""When a feature is on, and its class, which is called with the setup and makes a `Feature`."""
