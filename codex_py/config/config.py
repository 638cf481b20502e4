"""The configuration of a session: the merged layers, with types."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from codex_py.config.check import without_effect
from codex_py.config.declared import permissions, tools
from codex_py.config.declared.features import Features
from codex_py.config.declared.permissions import GranularApproval, SandboxWorkspaceWrite
from codex_py.config.declared.section import is_set
from codex_py.config.declared.settings import Settings
from codex_py.config.domains import domain_rules
from codex_py.config.environment import ShellEnvironmentPolicy
from codex_py.config.files import read_text
from codex_py.config.layers import SYSTEM_FOLDER, Layers, read_layers
from codex_py.config.limits import Budget, configured_budget
from codex_py.config.mcp import McpServerConfig, mcp_servers
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
from codex_py.config.reviewers import reviewer_point
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


@frozen(kw_only=True)
class Config:
    """The configuration of a session.

    A field here is derived from settings, or is a setting that a session replaces. All other
    settings are read from `settings`. A field is None if its key is not set.
    """

    home: Path
    """`$CODEX_HOME`; it need not exist yet."""
    cwd: Path
    project_root: Path | None
    inside_git: bool
    """True if a `.git` entry was found; git itself is not run."""
    trust: Trust | None
    project_trust: ProjectTrust
    """Says whether the files in the project's `.codex` folders are used, and has their contents."""

    model: str
    """The model without its provider, even if the setting is `provider/model`."""
    model_provider: str
    model_providers: Mapping[str, Mapping[str, Any]]
    """The tables as the user wrote them. A built-in provider is among them only if the user sets a
    key of it."""
    model_context_window: int | None
    model_max_output_tokens: int | None
    """The limit of every request; None: as the provider and the model need it."""
    model_auto_compact_token_limit: int | None
    model_reasoning_effort: str | None
    model_fallbacks: tuple[tuple[str, str], ...]
    """Pairs of provider and model that take over if one fails, in this order."""

    base_instructions: str | None
    """The contents of `model_instructions_file`, or `instructions`."""
    developer_instructions: str | None
    compact_prompt: str | None
    project_doc_max_bytes: int

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
    budget: Budget
    """The limits of a run. A project can only tighten them."""
    web_search: Literal["disabled", "cached", "indexed", "live"]
    mcp_servers: Mapping[str, McpServerConfig]

    skill_folders: tuple[Path, ...] = ()
    """Further folders of skills, absolute, which the client of a server names."""
    plugins: tuple[Plugin, ...]
    """The plugins, sorted by name. Only their MCP servers are in the layers."""
    notify: tuple[str, ...] | None
    features: Features

    requirements: Requirements
    layers: Layers
    settings: Settings
    """All keys of the merged layers."""
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
        mode = self.sandbox_mode
        if mode is None:
            mode = "workspace-write" if self.trust == "trusted" else "read-only"
        added = [Path(os.path.normpath(self.cwd / folder)) for folder in add_dirs]
        policy = self._policy(mode, added)
        if self.domains is not None and mode != "danger-full-access":
            policy = _with_domains(policy, self.domains)
        return self.requirements.held(policy)

    def _policy(
        self,
        mode: SandboxMode,
        added: Sequence[Path],
    ) -> SandboxPolicy:
        """The policy before the domain list and the requirements restrict it."""
        rules = self.files.plus(protection_rules(self.layers, added))
        has_network = mode == "danger-full-access"
        # Without a profile that decides, commands may write to all workspace roots.
        profile_name = ""
        writes_roots = True
        profile = self.permission_profile
        if profile is not None:
            rules = rules.plus(profile.rules(added))
            if profile.decides:
                profile_name = profile.name
                has_network = has_network or profile.network
                writes_roots = profile.writes_roots
        if mode != "workspace-write":
            return SandboxPolicy(
                mode=mode,
                network_access=has_network,
                files=rules,
                profile=profile_name,
            )
        configured = self.sandbox_workspace_write
        roots = configured.writable_roots
        if writes_roots:
            roots = (self.cwd, *roots, *added)
        unique = tuple(dict.fromkeys(roots))
        return replace(
            configured,
            writable_roots=unique,
            files=rules,
            profile=profile_name,
        )


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
    with_project: bool = True,
    user_text: str | None = None,
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
        with_project: False leaves the files and the trust of the project out.
        user_text: the text to read in place of the user's file.

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
        with_project=with_project,
        user_text=user_text,
    )
    try:
        allowed_layers, requirements = required(layers)
        return _config(allowed_layers, requirements)
    except ConfigError as error:
        raise layers.located(error) from None


def _with_domains(policy: SandboxPolicy, domains: DomainRules) -> SandboxPolicy:
    """Restrict the network of a policy to the domain list.

    A policy without network access gets access to the opened hosts of the list only.
    """
    if not policy.network_access:
        domains = replace(domains, allow=domains.opened)
    has_network = policy.network_access or bool(domains.opened)
    return replace(policy, network_access=has_network, domains=domains)


def _config(layers: Layers, requirements: Requirements) -> Config:
    """Derive the fields of the configuration from the merged layers."""
    values = layers.merged()
    tables: Mapping[str, Any] = values.get("model_providers", {})
    named = named_provider(layers, {*BUILT_IN_PROVIDERS, *tables})
    if named is not None:
        values["model_provider"], values["model"] = named

    settings = Settings(values)
    servers, server_warnings = mcp_servers(
        values.get("mcp_servers", {}),
        lambda name: layers.where(("mcp_servers", name)),
    )
    reviewer_point(settings.approvals_reviewer)
    for claimed in settings.claimed.values():
        claimed.check(layers)
    sandbox_mode, profile = chosen_permissions(layers)
    workspace_roots = (layers.cwd,)
    if profile is not None:
        workspace_roots = (layers.cwd, *profile.roots)
    if profile is not None and profile.decides:
        workspace_write = profile.policy(workspace_roots)
    else:
        workspace_write = _workspace_write(settings.sandbox_workspace_write)
    files = file_rules(layers, profile, workspace_roots).denying(requirements.files)
    accepted = accepted_lacks(layers)
    if "permissions.filesystem" in accepted and not requirements.files.denies:
        files = replace(files, may_be_unenforced=True)
    return Config(
        home=layers.home,
        cwd=layers.cwd,
        project_root=layers.project_root,
        inside_git=project_root(layers.cwd, (".git",)) is not None,
        trust=layers.trust,
        project_trust=layers.project_trust,
        model=settings.model,
        model_provider=settings.model_provider,
        model_providers=tables,
        model_context_window=settings.model_context_window,
        model_max_output_tokens=settings.model_max_output_tokens,
        model_auto_compact_token_limit=settings.model_auto_compact_token_limit,
        model_reasoning_effort=settings.model_reasoning_effort,
        model_fallbacks=tuple(map(fallback_model, settings.model_fallbacks)),
        budget=configured_budget(layers),
        base_instructions=_text(
            layers, files, "model_instructions_file", settings.instructions
        ),
        developer_instructions=settings.developer_instructions,
        compact_prompt=_text(
            layers, files, "experimental_compact_prompt_file", settings.compact_prompt
        ),
        project_doc_max_bytes=settings.project_doc_max_bytes,
        approval_policy=_approval(settings.approval_policy),
        sandbox_mode=sandbox_mode,
        sandbox_workspace_write=workspace_write,
        permission_profile=profile,
        files=files,
        domains=domain_rules(layers, accepted),
        sandbox_limits=_sandbox_limits(settings.sandbox_limits),
        shell_environment=_shell_environment(settings.shell_environment_policy),
        web_search=_web_search(settings),
        mcp_servers=servers,
        plugins=layers.plugins,
        notify=settings.notify,
        features=settings.features,
        requirements=requirements,
        layers=layers,
        settings=settings,
        warnings=(
            *layers.warnings,
            *requirements.warnings,
            *server_warnings,
            *without_effect(values),
            *_missing_roots(workspace_write, sandbox_mode),
        ),
        unenforced=unenforced(layers),
    )


def _missing_roots(policy: SandboxPolicy, mode: str | None) -> Iterator[str]:
    """Warn of each missing writable root. It is not created: it may be a typing mistake."""
    if mode in {"read-only", "danger-full-access"}:
        return
    for root in policy.writable_roots:
        if not os.path.exists(root):
            yield f"The writable root {root} does not exist, and commands cannot make it."


def _workspace_write(section: SandboxWorkspaceWrite) -> SandboxPolicy:
    return SandboxPolicy(
        mode="workspace-write",
        writable_roots=section.writable_roots,
        network_access=section.network_access,
        exclude_tmpdir_env_var=section.exclude_tmpdir_env_var,
        exclude_slash_tmp=section.exclude_slash_tmp,
    )


def _sandbox_limits(section: permissions.SandboxLimits) -> SandboxLimits:
    return SandboxLimits(
        max_processes=section.max_processes,
        max_open_files=section.max_open_files,
        max_memory_mb=section.max_memory_mb,
    )


def _shell_environment(section: tools.ShellEnvironmentPolicy) -> ShellEnvironmentPolicy:
    return ShellEnvironmentPolicy(
        inherit=section.inherit,
        ignore_default_excludes=section.ignore_default_excludes,
        exclude=section.exclude,
        set=section.set,
        include_only=section.include_only,
    )


def _web_search(
    settings: Settings,
) -> Literal["disabled", "cached", "indexed", "live"]:
    # The old switch `tools.web_search = false` still turns it off.
    if settings.tools.web_search is False and not is_set(settings, "web_search"):
        return "disabled"
    return settings.web_search


def _text(
    layers: Layers,
    files: FileRules,
    file_key: str,
    otherwise: str | None,
) -> str | None:
    """The contents of the file that `file_key` names; `otherwise` if no layer names one.

    Raises:
        ConfigError: the file does not exist, cannot be read, or is denied.
    """
    naming = [layer for layer in layers.layers if file_key in layer.values]
    if not naming:
        return otherwise
    layer = naming[0]
    root = None
    if layer.name == "project":
        root = layers.project_root
    path = Path(layer.values[file_key])
    if denials_of(files).refuses(path):
        raise ConfigError(f"`{file_key}` names {path}, which is denied")
    text = read_text(path, root=root)
    if text is None:
        raise ConfigError(f"`{file_key}` names {path}, which does not exist")
    return text


def _approval(policy: str | GranularApproval | None) -> AskForApproval | None:
    if policy is None:
        return None
    if isinstance(policy, str):
        return ApprovalPolicy(policy)
    granular = policy.granular
    return GranularPolicy(
        sandbox_approval=_decided(granular.sandbox_approval, "sandbox_approval"),
        rules=_decided(granular.rules, "rules"),
        mcp_elicitations=_decided(granular.mcp_elicitations, "mcp_elicitations"),
        request_permissions=granular.request_permissions or False,
        skill_approval=granular.skill_approval or False,
    )


def _decided(answer: bool | None, key: str) -> bool:
    if answer is None:
        # The user could only guess a default.
        raise ConfigError(f"`approval_policy.granular` needs `{key}`: true or false")
    return answer
