"""The configuration of a session: the merged layers, with types."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from codex_py.config.check import without_effect
from codex_py.config.declared.settings import Settings
from codex_py.config.domains import domain_rules
from codex_py.config.environment import ShellEnvironmentPolicy
from codex_py.config.files import read_text
from codex_py.config.layers import SYSTEM_FOLDER, Layers, read_layers
from codex_py.config.limits import (
    Budget,
    GateSettings,
    configured_budget,
    configured_gates,
)
from codex_py.config.mcp import McpServerConfig, StoreKind, mcp_servers
from codex_py.config.model_name import fallback_model, named_provider
from codex_py.config.paths import project_root
from codex_py.config.permission_profiles import (
    PermissionProfile,
    chosen_permissions,
    file_rules,
    protection_rules,
)
from codex_py.config.plugins import Plugin
from codex_py.config.project_trust import ProjectTrust, Trust
from codex_py.config.requirements import Requirements, required
from codex_py.config.unenforced import accepted_lacks, unenforced
from codex_py.errors import ConfigError
from codex_py.filesystem.denials import denials_of
from codex_py.protocol.approval import (
    ApprovalPolicy,
    AskForApproval,
    GranularPolicy,
    SandboxLimits,
    SandboxMode,
    SandboxPolicy,
)
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.file_rules import NO_RULES, FileRules
from codex_py.protocol.frozen import frozen
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS

_T = TypeVar("_T", SandboxLimits, SandboxPolicy, ShellEnvironmentPolicy)
_NOT_IN_FILES: Final = {
    "is_final": False,
    "files": NO_RULES,
    "domains": None,
    "profile": "",
}


def value_of(key: str | None = None) -> Any:
    """Declare a field with the value of a key in `Settings`, by default the key of its name."""
    return field(metadata={"key": key})


@frozen(kw_only=True)
class Config:
    """The settings, named and defined as the keys in `config.toml`; None for an unset key."""

    home: Path
    """`$CODEX_HOME`; it need not exist yet."""
    cwd: Path
    project_root: Path | None
    inside_git: bool
    """True if a `.git` entry was found; git itself is not run."""
    trust: Trust | None
    project_trust: ProjectTrust
    """Tells if the files in the project's `.codex` folders are used, and has their contents."""

    model: str = value_of()
    """The model without its provider, even if the setting is `provider/model`."""
    model_provider: str = value_of()
    model_providers: Mapping[str, Mapping[str, Any]]
    """The tables as the user wrote them. A built-in provider is among them only if the user sets a
    key of it."""
    oss_provider: str | None = value_of()
    openai_base_url: str | None = value_of()
    model_context_window: int | None = value_of()
    model_max_output_tokens: int | None = value_of()
    """The limit of every request; None: as the provider and the model need it."""
    model_auto_compact_token_limit: int | None = value_of()
    model_reasoning_effort: str | None = value_of()
    plan_mode_reasoning_effort: str | None = value_of()
    """The reasoning effort in plan mode; None: the same as in other turns."""
    model_reasoning_summary: Literal["auto", "concise", "detailed", "none"] | None = (
        value_of()
    )
    model_verbosity: Literal["low", "medium", "high"] | None = value_of()
    model_catalog_json: Path | None = value_of()
    model_fallbacks: tuple[tuple[str, str], ...]
    """Pairs of provider and model that take over if one fails, in this order."""
    model_prices: Mapping[str, Mapping[str, float | str]]
    """Dollars per million tokens, by model: `input`, `cached_input`, `output`; and `same_as`, a
    known model."""
    service_tier: str | None = value_of()
    review_model: str | None = value_of()
    tool_choice: str = value_of()
    """The text that `ToolChoice.parse` reads."""
    parallel_tool_calls: bool | None = value_of()
    """None: as the catalogue says for the model."""

    base_instructions: str | None
    """The contents of `model_instructions_file`, or `instructions`."""
    developer_instructions: str | None = value_of()
    compact_prompt: str | None
    include_permissions_instructions: bool = value_of()
    include_environment_context: bool = value_of()
    include_collaboration_mode_instructions: bool = value_of()
    project_doc_max_bytes: int = value_of()
    project_doc_fallback_filenames: tuple[str, ...] = value_of()

    approval_policy: AskForApproval | None
    sandbox_mode: SandboxMode | None
    """None: `sandbox_policy` chooses."""
    sandbox_workspace_write: SandboxPolicy
    """The configured policy, to which `sandbox_policy` adds the working directory."""
    permission_profile: PermissionProfile | None = None
    """The chosen profile; None for the built-in ones."""
    files: FileRules = NO_RULES
    """The rules of the profile and of `[protection]`, for the working directory and for further
    workspace roots."""
    domains: DomainRules | None = None
    """The only hosts that commands with network access may reach; None: all hosts."""
    sandbox_limits: SandboxLimits

    shell_environment: ShellEnvironmentPolicy
    allow_login_shell: bool = value_of()
    budget: Budget
    """The limits of a run. A project can only tighten them."""
    gates: GateSettings
    tool_output_token_limit: int | None = value_of()
    background_terminal_max_timeout_ms: int = value_of(
        "background_terminal_max_timeout"
    )
    web_search: Literal["disabled", "cached", "indexed", "live"]
    web_search_options: Mapping[str, Any]
    """`[tools.web_search]`: `context_size`, `allowed_domains`, `location`."""
    update_plan_enabled: bool | None = value_of("tools.update_plan.enabled")
    request_user_input_enabled: bool | None = value_of(
        "tools.experimental_request_user_input.enabled"
    )
    mcp_servers: Mapping[str, McpServerConfig]
    mcp_oauth_credentials_store: StoreKind = value_of()
    mcp_oauth_callback_port: int | None = value_of()
    """The port to which a browser returns from a login; None: any free port."""
    mcp_oauth_callback_url: str | None = value_of()
    """The address to which a browser is sent instead, such as a proxy in front of this machine."""

    plugins: tuple[Plugin, ...]
    """The plugins, sorted by name. Only their MCP servers are in the layers."""
    notify: tuple[str, ...] | None = value_of()
    patch_ambiguous: Literal["first", "refuse"] = value_of("patch.ambiguous")
    """The treatment of a hunk that fits several places."""
    history_persistence: Literal["save-all", "none"] = value_of("history.persistence")
    hide_agent_reasoning: bool = value_of()
    features: Mapping[str, Any]

    requirements: Requirements
    layers: Layers
    settings: Settings
    """All keys of the merged layers. The fields above are derived from them, or replaceable by a
    session."""
    warnings: tuple[str, ...]
    """One sentence each, for the user."""
    unenforced: tuple[str, ...]
    """One sentence for each protection that is set, missing in this version and not accepted."""

    def require_enforced(self) -> None:
        """Refuse to start a session without a protection that the user has set.

        Raises:
            ConfigError: the message names the files, and the option that accepts it.
        """
        if self.unenforced:
            raise ConfigError("\n".join(self.unenforced))

    def sandbox_policy(self, add_dirs: Sequence[Path] = ()) -> SandboxPolicy:
        """The access of commands: read-only unless the project is trusted or the user sets a mode.

        `add_dirs` are further writable folders, relative to the working directory or absolute. Like
        the configured ones, they apply only in the mode `workspace-write`.
        """
        mode = self.sandbox_mode or (
            "workspace-write" if self.trust == "trusted" else "read-only"
        )
        configured = self.sandbox_workspace_write
        profile = self.permission_profile
        added = [Path(os.path.normpath(self.cwd / folder)) for folder in add_dirs]
        rules = self.files.plus(protection_rules(self.layers, added))
        own = (self.cwd,)
        name = ""
        network = mode == "danger-full-access"
        if profile is not None:
            rules = rules.plus(profile.rules(added))
            if profile.decides:
                name = profile.name
                network = network or profile.network
                own, added = (own, added) if profile.writes_roots else ((), [])
        if mode == "workspace-write":
            roots = tuple(dict.fromkeys((*own, *configured.writable_roots, *added)))
            policy = replace(
                configured, writable_roots=roots, files=rules, profile=name
            )
        else:
            policy = SandboxPolicy(
                mode=mode, network_access=network, files=rules, profile=name
            )
        domains = self.domains
        if domains is not None and mode != "danger-full-access":
            if not policy.network_access:
                domains = replace(domains, allow=domains.opened)
            has_network = policy.network_access or bool(domains.opened)
            policy = replace(policy, network_access=has_network, domains=domains)
        return self.requirements.held(policy)


def load_config(
    *,
    cwd: Path | str = ".",
    environment: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    profile: str | None = None,
    ignore_user_config: bool = False,
    strict: bool = False,
    system: Path = SYSTEM_FOLDER,
) -> Config:
    """Read the configuration for a session in `cwd`.

    Unknown keys become warnings. Protections that are not enforced (`Config.unenforced`) stop the
    session; this function does not raise for them.

    Args:
        environment: by default that of the program.
        overrides: the texts of `-c KEY=VALUE`.
        flags: the dedicated options of the command line, as a table in the form of the file:
            `{"model": "gpt-5.5", "sandbox_mode": "read-only"}`.
        strict: unknown keys are errors.
        system: the administrator's folder.

    Raises:
        ConfigError: the message names the key, the file and, where known, the line; or `cwd` is not
            a folder, and the message names it.
    """
    if not Path(cwd).is_dir():
        raise ConfigError(f"`cwd`: there is no folder {str(cwd)!r}")
    layers = read_layers(
        cwd=Path(cwd),
        environment=os.environ if environment is None else environment,
        overrides=overrides,
        flags=flags,
        profile=profile,
        ignore_user_config=ignore_user_config,
        strict=strict,
        system=system,
    )
    try:
        return _config(*required(layers))
    except ConfigError as error:
        raise layers.located(error) from None


def _config(layers: Layers, requirements: Requirements) -> Config:
    values = layers.merged()
    tables: Mapping[str, Any] = values.get("model_providers", {})
    named = named_provider(layers, {*BUILT_IN_PROVIDERS, *tables})
    if named is not None:
        values["model_provider"], values["model"] = named

    settings = Settings(values)

    def section(cls: type[_T], key: str, **given: Any) -> _T:
        names = [each.name for each in fields(cls) if each.name not in given]
        return cls(
            **given, **{name: _value(settings, f"{key}.{name}") for name in names}
        )

    servers, server_warnings = mcp_servers(
        values.get("mcp_servers", {}), lambda name: layers.where(("mcp_servers", name))
    )
    searching: Any = values.get("tools", {}).get("web_search", {})
    sandbox_mode, profile = chosen_permissions(layers)
    workspace = (layers.cwd, *(() if profile is None else profile.roots))
    configured = section(
        SandboxPolicy,
        "sandbox_workspace_write",
        mode="workspace-write",
        **_NOT_IN_FILES,
    )
    if profile is not None and profile.decides:
        configured = profile.policy(workspace)
    denied = requirements.files
    files = file_rules(layers, profile, workspace).denying(denied)
    accepts = "permissions.filesystem" in accepted_lacks(layers) and not denied.denies
    return Config(
        home=layers.home,
        cwd=layers.cwd,
        project_root=layers.project_root,
        inside_git=project_root(layers.cwd, (".git",)) is not None,
        trust=layers.trust,
        project_trust=layers.project_trust,
        model_fallbacks=tuple(map(fallback_model, values.get("model_fallbacks", ()))),
        model_providers=tables,
        model_prices=values.get("model_prices", {}),
        budget=configured_budget(layers),
        gates=configured_gates(layers),
        base_instructions=_text(
            layers, values, files, "model_instructions_file", "instructions"
        ),
        compact_prompt=_text(
            layers, values, files, "experimental_compact_prompt_file", "compact_prompt"
        ),
        approval_policy=_approval(values.get("approval_policy")),
        sandbox_mode=sandbox_mode,
        sandbox_workspace_write=configured,
        permission_profile=profile,
        files=replace(files, may_be_unenforced=accepts),
        domains=domain_rules(layers, accepted_lacks(layers)),
        sandbox_limits=section(SandboxLimits, "sandbox_limits"),
        shell_environment=section(ShellEnvironmentPolicy, "shell_environment_policy"),
        # The old switch `tools.web_search = false` still turns it off.
        web_search=values.get(
            "web_search", "disabled" if searching is False else Settings.web_search
        ),
        web_search_options={} if isinstance(searching, bool) else searching,
        mcp_servers=servers,
        plugins=layers.plugins,
        features=values.get("features", {}),
        requirements=requirements,
        layers=layers,
        settings=settings,
        warnings=(
            *layers.warnings,
            *requirements.warnings,
            *server_warnings,
            *without_effect(values),
            *_missing_roots(configured, sandbox_mode),
        ),
        unenforced=unenforced(layers),
        **{
            each.name: _value(settings, each.metadata["key"] or each.name)
            for each in fields(Config)
            if "key" in each.metadata
        },
    )


def _missing_roots(policy: SandboxPolicy, mode: str | None) -> Iterator[str]:
    """Warn of each missing writable root. It is not created: it may be a typing mistake."""
    if mode in {"read-only", "danger-full-access"}:
        return
    for root in policy.writable_roots:
        if not root.exists():
            yield f"The writable root {root} does not exist, and commands cannot make it."


def _value(settings: Settings, key: str) -> Any:
    """The value of a dotted key, or its default, converted to the key's type."""
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _text(
    layers: Layers, values: Mapping[str, Any], files: FileRules, file_key: str, key: str
) -> str | None:
    """The contents of the file that `file_key` names, else the value of `key`."""
    layer = next((layer for layer in layers.layers if file_key in layer.values), None)
    if layer is None:
        return values.get(key)
    if layer.name == "project":
        root = layers.project_root
    else:
        root = None
    path = Path(layer.values[file_key])
    if denials_of(files).refuses(path):
        raise ConfigError(f"`{file_key}` names {path}, which is denied")
    text = read_text(path, root=root)
    if text is None:
        raise ConfigError(f"`{file_key}` names {path}, which does not exist")
    return text


def _approval(value: Any) -> AskForApproval | None:
    match value:
        case None:
            return None
        case str():
            return ApprovalPolicy(value)
        case _:
            granular = value.get("granular", {})
            for key in ("sandbox_approval", "rules", "mcp_elicitations"):
                if key not in granular:
                    # The user could only guess a default.
                    raise ConfigError(
                        f"`approval_policy.granular` needs `{key}`: true or false"
                    )
            names = {each.name for each in fields(GranularPolicy)}
            # Unknown keys have already caused a warning.
            return GranularPolicy(
                **{key: granular[key] for key in names & granular.keys()}
            )
