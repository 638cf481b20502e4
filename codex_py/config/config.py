"""The configuration of a session: what all the layers amount to, with types."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from codex_py.config.environment import ShellEnvironmentPolicy
from codex_py.config.files import read_required_text
from codex_py.config.layers import SYSTEM_FOLDER, read_layers
from codex_py.config.mcp import McpServerConfig, StoreKind, mcp_servers
from codex_py.config.paths import inside_git
from codex_py.config.permissions import chosen_sandbox_mode
from codex_py.config.project_trust import ProjectTrust
from codex_py.config.schema import DEFAULTS
from codex_py.config.trust import Trust
from codex_py.config.unenforced import unenforced
from codex_py.config.without_effect import without_effect
from codex_py.errors import ConfigError
from codex_py.protocol.approval import (
    ApprovalPolicy,
    AskForApproval,
    GranularPolicy,
    SandboxMode,
    SandboxPolicy,
)
from codex_py.protocol.frozen import frozen
from codex_py.protocol.limits import SandboxLimits

WebSearchMode: TypeAlias = Literal["disabled", "cached", "indexed", "live"]


@frozen
class SandboxWorkspaceWrite:
    """`[sandbox_workspace_write]`."""

    writable_roots: tuple[Path, ...] = ()
    """Absolute, beside the working directory."""
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


@frozen(kw_only=True)
class Config:
    """Names and meanings are those of the keys in `config.toml`; None stands for an unset key."""

    home: Path
    """`$CODEX_HOME`; it need not exist yet."""
    cwd: Path
    project_root: Path | None
    inside_git: bool
    trust: Trust | None
    project_trust: ProjectTrust
    """Whether the files of its `.codex` folders are used, and what is in those that are."""

    model: str
    model_provider: str
    model_providers: Mapping[str, Mapping[str, Any]]
    """Tables as the user wrote them; the built-in providers are not among them."""
    oss_provider: str | None
    openai_base_url: str | None
    model_context_window: int | None
    model_auto_compact_token_limit: int | None
    model_reasoning_effort: str | None
    model_reasoning_summary: str | None
    model_verbosity: str | None
    model_catalog_json: Path | None
    service_tier: str | None

    base_instructions: str | None
    """The contents of `model_instructions_file`, or `instructions`."""
    developer_instructions: str | None
    compact_prompt: str | None
    include_permissions_instructions: bool
    include_environment_context: bool
    project_doc_max_bytes: int
    project_doc_fallback_filenames: tuple[str, ...]

    approval_policy: AskForApproval | None
    sandbox_mode: SandboxMode | None
    """None leaves it to the rule of `sandbox_policy`."""
    sandbox_workspace_write: SandboxWorkspaceWrite
    sandbox_limits: SandboxLimits

    shell_environment: ShellEnvironmentPolicy
    allow_login_shell: bool
    tool_output_token_limit: int | None
    background_terminal_max_timeout_ms: int
    web_search: WebSearchMode
    web_search_options: Mapping[str, Any]
    """`[tools.web_search]`: `context_size`, `allowed_domains`, `location`."""
    update_plan_enabled: bool | None
    mcp_servers: Mapping[str, McpServerConfig]
    mcp_oauth_credentials_store: StoreKind
    mcp_oauth_callback_port: int | None
    """At which a browser comes back from a login; None for any that is free."""
    mcp_oauth_callback_url: str | None
    """Where a browser is sent instead, if that is what leads to this machine."""

    notify: tuple[str, ...] | None
    patch_ambiguous: Literal["first", "refuse"]
    """What becomes of a hunk that fits several places."""
    history_persistence: Literal["save-all", "none"]
    hide_agent_reasoning: bool
    features: Mapping[str, Any]

    values: Mapping[str, Any]
    """All layers merged, for keys that have no field here; defaults are not filled in."""
    warnings: tuple[str, ...]
    """One sentence each, for the user."""
    unenforced: tuple[str, ...]
    """One sentence for each protection that is asked for, not there and not accepted."""

    def require_enforced(self) -> None:
        """Make sure that a session would be protected as the user asked.

        Raises:
            ConfigError: it would not; the message names the files, and what accepts it.
        """
        if self.unenforced:
            raise ConfigError("\n".join(self.unenforced))

    def sandbox_policy(self, add_dirs: Sequence[Path] = ()) -> SandboxPolicy:
        """What commands may touch: reading alone, unless the project is trusted or the user says more.

        `add_dirs` are further writable folders, relative to the working directory or absolute; like
        the configured ones they count with `workspace-write` alone.
        """
        mode = self.sandbox_mode or ("workspace-write" if self.trust == "trusted" else "read-only")
        if mode != "workspace-write":
            return SandboxPolicy(mode=mode, network_access=mode == "danger-full-access")
        settings = self.sandbox_workspace_write
        added = (Path(os.path.normpath(self.cwd / folder)) for folder in add_dirs)
        roots = dict.fromkeys((self.cwd, *settings.writable_roots, *added))
        return SandboxPolicy(
            mode=mode,
            writable_roots=tuple(roots),
            network_access=settings.network_access,
            exclude_tmpdir_env_var=settings.exclude_tmpdir_env_var,
            exclude_slash_tmp=settings.exclude_slash_tmp,
        )


def load_config(
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
    flags: Mapping[str, Any] | None = None,
    profile: str | None = None,
    ignore_user_config: bool = False,
    strict: bool = False,
    system: Path = SYSTEM_FOLDER,
) -> Config:
    """Read the configuration for a session in `cwd`.

    Unknown keys become warnings. Protections that are not enforced (`Config.unenforced`) stop the session, not this.

    Args:
        environment: that of the program where none is given.
        overrides: the texts of `-c KEY=VALUE`.
        flags: the dedicated options of the command line, as a table in the form of the file:
            `{"model": "gpt-5.5", "sandbox_mode": "read-only"}`.
        strict: unknown keys are errors.
        system: the administrator's folder.

    Raises:
        ConfigError: the message names the file, the line where known, and the key.
    """
    layers = read_layers(
        cwd=cwd,
        environment=os.environ if environment is None else environment,
        overrides=overrides,
        flags=flags,
        profile=profile,
        ignore_user_config=ignore_user_config,
        strict=strict,
        system=system,
    )
    values = layers.merged()

    def get(key: str) -> Any:
        value: Any = values
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                return DEFAULTS.get(key)
            value = cast("dict[str, Any]", value)[part]
        return value

    def text_of(key: str) -> str | None:
        layer = next((layer for layer in layers.layers if key in layer.values), None)
        if layer is None:
            return None
        root = layers.project_root if layer.name == "project" else None
        return read_required_text(Path(layer.values[key]), key, root=root)

    servers, server_warnings = mcp_servers(values.get("mcp_servers", {}))
    sandbox_mode, sandbox_warnings = chosen_sandbox_mode(layers)
    web_search_tool = cast("dict[str, Any] | bool | None", get("tools.web_search"))
    base_instructions = text_of("model_instructions_file")
    compact_prompt = text_of("experimental_compact_prompt_file")
    catalog, notify = get("model_catalog_json"), get("notify")
    return Config(
        home=layers.home,
        cwd=layers.cwd,
        project_root=layers.project_root,
        inside_git=inside_git(layers.cwd),
        trust=layers.trust,
        project_trust=layers.project_trust,
        model=get("model"),
        model_provider=get("model_provider"),
        model_providers=values.get("model_providers", {}),
        oss_provider=get("oss_provider"),
        openai_base_url=get("openai_base_url"),
        model_context_window=get("model_context_window"),
        model_auto_compact_token_limit=get("model_auto_compact_token_limit"),
        model_reasoning_effort=get("model_reasoning_effort"),
        model_reasoning_summary=get("model_reasoning_summary"),
        model_verbosity=get("model_verbosity"),
        model_catalog_json=None if catalog is None else Path(catalog),
        service_tier=get("service_tier"),
        base_instructions=get("instructions") if base_instructions is None else base_instructions,
        developer_instructions=get("developer_instructions"),
        compact_prompt=get("compact_prompt") if compact_prompt is None else compact_prompt,
        include_permissions_instructions=get("include_permissions_instructions"),
        include_environment_context=get("include_environment_context"),
        project_doc_max_bytes=get("project_doc_max_bytes"),
        project_doc_fallback_filenames=tuple(get("project_doc_fallback_filenames")),
        approval_policy=_approval(get("approval_policy")),
        sandbox_mode=sandbox_mode,
        sandbox_workspace_write=SandboxWorkspaceWrite(
            writable_roots=tuple(map(Path, get("sandbox_workspace_write.writable_roots"))),
            network_access=get("sandbox_workspace_write.network_access"),
            exclude_tmpdir_env_var=get("sandbox_workspace_write.exclude_tmpdir_env_var"),
            exclude_slash_tmp=get("sandbox_workspace_write.exclude_slash_tmp"),
        ),
        sandbox_limits=_sandbox_limits(get),
        shell_environment=ShellEnvironmentPolicy(
            inherit=get("shell_environment_policy.inherit"),
            ignore_default_excludes=get("shell_environment_policy.ignore_default_excludes"),
            exclude=tuple(get("shell_environment_policy.exclude")),
            set=get("shell_environment_policy.set"),
            include_only=tuple(get("shell_environment_policy.include_only")),
        ),
        allow_login_shell=get("allow_login_shell"),
        tool_output_token_limit=get("tool_output_token_limit"),
        background_terminal_max_timeout_ms=get("background_terminal_max_timeout"),
        # The old switch `tools.web_search = false` still means what it says.
        web_search=values.get("web_search")
        or ("disabled" if web_search_tool is False else get("web_search")),
        web_search_options=web_search_tool if isinstance(web_search_tool, dict) else {},
        update_plan_enabled=get("tools.update_plan.enabled"),
        mcp_servers=servers,
        mcp_oauth_credentials_store=values.get("mcp_oauth_credentials_store", "auto"),
        mcp_oauth_callback_port=get("mcp_oauth_callback_port"),
        mcp_oauth_callback_url=get("mcp_oauth_callback_url"),
        notify=None if notify is None else tuple(notify),
        patch_ambiguous=get("patch.ambiguous"),
        history_persistence=get("history.persistence"),
        hide_agent_reasoning=get("hide_agent_reasoning"),
        features=values.get("features", {}),
        values=values,
        warnings=(
            *layers.warnings,
            *sandbox_warnings,
            *server_warnings,
            *without_effect(values),
        ),
        unenforced=unenforced(layers),
    )


def _sandbox_limits(get: Callable[[str], Any]) -> SandboxLimits:
    limits = {field.name: get(f"sandbox_limits.{field.name}") for field in fields(SandboxLimits)}
    for name, value in limits.items():
        if value == 0:
            raise ConfigError(f"sandbox_limits.{name} must be more than 0")
    return SandboxLimits(**limits)


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
                    # Left out, it would be the user's guess what it means.
                    raise ConfigError(f"`approval_policy.granular` needs `{key}`: true or false")
            kinds = GranularPolicy.__dataclass_fields__
            # One that is not known has been warned about.
            return GranularPolicy(**{key: granular[key] for key in kinds if key in granular})
