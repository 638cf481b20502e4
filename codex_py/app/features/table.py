"""The features that a configuration turns on. LIGHT.

Each feature is one line here, and is loaded only if it is on.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from codex_py.app.loading import load
from codex_py.app.options import SessionSetup
from codex_py.config.declared.section import raw
from codex_py.config.definition_folders import skill_folders
from codex_py.config.hook_places import has_hooks
from codex_py.protocol.extension import Feature
from codex_py.protocol.place import Place

Slot: TypeAlias = Sequence[Feature]
"""The features in one row of the table: one or none, or those of extensions at a `Place`."""


@runtime_checkable
class Inherited(Protocol):
    """A feature that a child takes from its parent, whatever the child's configuration says."""

    def for_child(self, setup: SessionSetup) -> Feature:
        """Return the feature for a child with this setup; itself if all of its state is shared."""
        ...


class Row(NamedTuple):
    """A feature of the program. It is on if the condition is true."""

    condition: object
    maker: str
    """The module and the class or function that makes the feature from the setup."""


def configured_features(
    setup: SessionSetup, of_parent: Sequence[Slot] = ()
) -> list[Slot]:
    """Return the features in the order of the table, the outermost first.

    Args:
        of_parent: the features of the parent session, as returned here; empty if there is none.

    Raises:
        CodexError: a feature cannot be set up.
    """
    table = _table(setup)
    if not of_parent:
        extensions = _of_extensions(setup)
        return [_slot(row, setup, extensions) for row in table]
    pairs = zip(table, of_parent, strict=True)
    return [_slot_of_child(row, slot, setup) for row, slot in pairs]


def _slot(
    row: Row | Place, setup: SessionSetup, extensions: Mapping[Place, Slot]
) -> Slot:
    """The features in a row for a session at the top."""
    if isinstance(row, Place):
        return extensions.get(row, ())
    return (load(row.maker)(setup),) if row.condition else ()


def _slot_of_child(row: Row | Place, of_parent: Slot, setup: SessionSetup) -> Slot:
    """The features in a row for a child, whose parent has `of_parent` in it."""
    if isinstance(row, Place):
        return [_inherited(feature, setup) for feature in of_parent]
    inherited = [each for each in of_parent if isinstance(each, Inherited)]
    if inherited:
        return [each.for_child(setup) for each in inherited]
    return _slot(row, setup, {})


def _inherited(feature: Feature, setup: SessionSetup) -> Feature:
    """The feature of an extension for a child. Without `for_child`, it is shared."""
    if isinstance(feature, Inherited):
        return feature.for_child(setup)
    return feature


def _of_extensions(setup: SessionSetup) -> Mapping[Place, Slot]:
    """The features that options, tables of the configuration and the reviewer ask for."""
    settings = setup.config.settings
    if not (
        settings.extensions
        or settings.claimed
        or setup.options.of_extensions
        or settings.approvals_reviewer not in {None, "user"}
    ):
        return {}
    from codex_py.app.installed import features_of_extensions  # 2 ms

    return features_of_extensions(setup)


def _table(setup: SessionSetup) -> Sequence[Row | Place]:
    """The features of the program, and the places of those of extensions."""
    config = setup.config
    options = setup.options
    switches = config.features
    settings = config.settings
    is_top = options.parent is None
    agents = switches.multi_agent is not False and settings.agents.enabled is not False
    # Clients of an app server set goals unasked; elsewhere the tools would add to every request.
    goals = switches.goals
    if goals is None:
        goals = options.source == "vscode"
    servers = options.may_add_servers or any(
        server.enabled for server in config.mcp_servers.values()
    )
    # A list of domains counts in every sandbox mode, also in one that does not use it.
    domains = config.domains is not None or config.requirements.domains is not None
    # Codex has no such switch: only a review switches skills off.
    may_have_skills = raw(switches).get("skills") is not False
    skills = may_have_skills and skill_folders(config, setup.environment)
    sandbox_check = config.files.denies or domains or setup.unwritable_folders()
    return (
        Row(
            sandbox_check and is_top,
            "codex_py.app.features.sandbox_check:sandbox_check",
        ),
        # Around the hooks: a call that they refuse runs no command, so it reaches no host.
        Row(domains, "codex_py.app.features.network:NetworkList"),
        Row(settings.log_file is not None, "codex_py.app.features.debug_log:DebugLog"),
        # These are around all others: they see each call from its start to its end.
        Place.OUTERMOST,
        Row(skills, "codex_py.app.features.skills:SessionSkills"),
        # Outside of all features that count and change requests: a review sends none.
        Row(options.can_review and is_top, "codex_py.app.features.reviews:Reviews"),
        Row(True, "codex_py.app.features.tool_choice:ToolChoices"),
        # Outside of all features that change files: it sees the calls as a hook rewrote them, and
        # no refused call.
        Row(has_hooks(config), "codex_py.app.features.hooks.feature:HooksFeature"),
        # The hooks decide first about an approval and about the end of a turn.
        Place.BEHIND_HOOKS,
        # Behind the hooks and others who judge the result first.
        Row(goals and is_top, "codex_py.app.features.goals:Goals"),
        Row(True, "codex_py.app.features.turn_changes:TurnChanges"),
        Row(
            config.project_doc_max_bytes > 0,
            "codex_py.app.features.nested_agents_md:NestedAgentsMd",
        ),
        Row(config.notify, "codex_py.app.features.notify:TurnNotifier"),
        Row(True, "codex_py.app.features.plan_mode:PlanMode"),
        Row(servers, "codex_py.app.features.mcp:McpFeature"),
        # The innermost: a call that another feature refuses does not wait for its turn.
        Row(agents, "codex_py.app.features.agents.feature:SubAgents"),
        # Inside of the features that add to a request.
        Row(config.budget.is_limited, "codex_py.app.features.budget:BudgetFeature"),
        Row(config.budget.loop_guard, "codex_py.app.features.loop_guard:LoopGuard"),
    )
