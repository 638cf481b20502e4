"""The features that a configuration turns on. LIGHT.

Each feature is one line here, and is loaded only if it is on.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.config.declared.section import raw
from codex_py.config.definition_folders import skill_folders
from codex_py.config.hook_places import has_hooks
from codex_py.protocol.extension import Feature


@runtime_checkable
class Inherited(Protocol):
    """A feature that a child takes from its parent, whatever the child's configuration says."""

    def for_child(self, setup: SessionSetup) -> Feature:
        """Return the feature for a child with this setup; itself if all of its state is shared."""
        ...


def configured_features(
    setup: SessionSetup, of_parent: Sequence[Feature | None] = ()
) -> list[Feature | None]:
    """Return the features in the order of the table, the outermost first. None: a feature is off.

    Args:
        of_parent: the features of the parent session, as returned here; empty if there is none.

    Raises:
        CodexError: a feature cannot be set up.
    """
    table = _table(setup)
    if not of_parent:
        of_parent = [None] * len(table)
    features: list[Feature | None] = []
    for inherited, (is_on, name) in zip(of_parent, table, strict=True):
        if isinstance(inherited, Inherited):
            features.append(inherited.for_child(setup))
        elif is_on:
            features.append(load(name)(setup))
        else:
            features.append(None)
    return features


def _table(setup: SessionSetup) -> Sequence[tuple[object, str]]:
    """Pair the condition of each feature with the class or function that makes it.

    A feature is on if its condition is true. The name is that of the module and of the maker, which
    is called with the setup.
    """
    config = setup.config
    options = setup.options
    switches = config.features
    settings = config.settings
    is_top = options.parent is None
    agents = switches.multi_agent is not False and settings.agents.enabled is not False
    reviewer = settings.approvals_reviewer not in {None, "user"}
    # Clients of an app server set goals unasked; elsewhere the tools would add to every request.
    goals = switches.goals
    if goals is None:
        goals = options.source == "vscode"
    gates = config.gates.is_any and options.source == "exec"
    servers = any(server.enabled for server in config.mcp_servers.values())
    # A list of domains counts in every sandbox mode, also in one that does not use it.
    domains = config.domains is not None or config.requirements.domains is not None
    # Codex has no such switch: only a review switches skills off.
    may_have_skills = raw(switches).get("skills") is not False
    skills = may_have_skills and skill_folders(config, setup.environment)
    sandbox_check = config.files.denies or domains or setup.unwritable_folders()
    return (
        (
            sandbox_check and is_top,
            "codex_py.app.features.sandbox_check:sandbox_check",
        ),
        # Around the hooks: a call that they refuse runs no command, so it reaches no host.
        (domains, "codex_py.app.features.network:NetworkList"),
        (settings.log_file is not None, "codex_py.app.features.debug_log:DebugLog"),
        # These two are around all others: they see each call from its start to its end.
        (
            settings.otel.has_exporter,
            "codex_py.app.features.otel.feature:telemetry",
        ),
        (options.suspension, "codex_py.app.features.suspension:SuspendedApprovals"),
        # Around all features that may change files.
        (options.bundle and is_top, "codex_py.app.features.change_bundle:ChangeBundle"),
        (skills, "codex_py.app.features.skills:SessionSkills"),
        # Outside of all features that count and change requests: a review sends none.
        (options.can_review and is_top, "codex_py.app.features.reviews:Reviews"),
        (True, "codex_py.app.features.tool_choice:ToolChoices"),
        # Outside of all features that change files: it sees the calls as a hook rewrote them, and
        # no refused call.
        (has_hooks(config), "codex_py.app.features.hooks.feature:HooksFeature"),
        # Behind the hooks, which decide first about an approval.
        (reviewer, "codex_py.app.features.approval_review:ApprovalReviewer"),
        # Behind the hooks: it is asked when they are satisfied. Around the record of changes, which
        # it looks at.
        (gates and is_top, "codex_py.app.features.gates.feature:Gates"),
        # Behind the hooks and the gates, which judge the result first.
        (goals and is_top, "codex_py.app.features.goals:Goals"),
        (True, "codex_py.app.features.turn_changes:TurnChanges"),
        (
            config.project_doc_max_bytes > 0,
            "codex_py.app.features.nested_agents_md:NestedAgentsMd",
        ),
        (config.notify, "codex_py.app.features.notify:TurnNotifier"),
        (True, "codex_py.app.features.plan_mode:PlanMode"),
        (servers, "codex_py.app.features.mcp:McpFeature"),
        # The innermost: a call that another feature refuses does not wait for its turn.
        (agents, "codex_py.app.features.agents.feature:SubAgents"),
        # Inside of the features that add to a request.
        (config.budget.is_limited, "codex_py.app.features.budget:BudgetFeature"),
        (config.budget.loop_guard, "codex_py.app.features.loop_guard:LoopGuard"),
    )
