"""Declares the keys about what the model may do. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from codex_py.config.declared.kinds import Limit
from codex_py.config.declared.section import Section, key, rest, table


class GranularRules(Section):
    """`[approval_policy.granular]`"""

    sandbox_approval: bool | None = key(
        "Ask you about calls that need more than the sandbox; false refuses them."
    )
    rules: bool | None = key("The same, for commands that a rule asks about.")
    mcp_elicitations: bool | None = key("The same, for questions of MCP servers.")
    request_permissions: bool | None = key(
        "The same, for permissions that the model asks for."
    )
    skill_approval: bool | None = key("The same, for scripts of skills.")


class GranularApproval(Section):
    """`[approval_policy]`"""

    granular: GranularRules = table()


class SandboxWorkspaceWrite(Section):
    """`[sandbox_workspace_write]`"""

    writable_roots: tuple[Path, ...] = key(
        "Further folders that commands may change.", default=()
    )
    network_access: bool = key("Give commands access to the network.", default=False)
    exclude_tmpdir_env_var: bool = key("`$TMPDIR` is not writable.", default=False)
    exclude_slash_tmp: bool = key("`/tmp` is not writable.", default=False)


class SandboxLimits(Section):
    """`[sandbox_limits]`"""

    max_processes: Limit = key(
        "The most processes and threads of a sandboxed command.", default=8192
    )
    max_open_files: Limit = key(
        "The most open files of each of its processes.", default=65536
    )
    max_memory_mb: Limit | None = key("The most data of each of its processes, in MiB.")


class PathsBelow(Section):
    """`[permissions.*.filesystem.*]`"""

    paths: Mapping[str, Literal["read", "write", "deny", "none"]] = rest(
        "The access to a path below the folder."
    )


class Filesystem(Section):
    """`[permissions.*.filesystem]`"""

    glob_scan_max_depth: Limit | None = key(
        "The depth to which folders are searched for patterns."
    )
    paths: Mapping[str, Literal["read", "write", "deny", "none"] | PathsBelow] = rest(
        "The access to a path, or to paths below it."
    )


class Network(Section):
    """`[permissions.*.network]`"""

    enabled: bool | None = key("Give commands access to the network.")
    mode: Literal["full", "limited"] | None = key(
        "`limited`: GET, HEAD and OPTIONS by plain HTTP alone."
    )
    allow_local_binding: bool | None = key(
        "Let allowed names have private and local addresses."
    )
    domains: Mapping[str, Literal["allow", "deny"]] = table(
        "Allow or deny hosts to commands, by pattern. A host that no pattern allows is denied."
    )
    others: Mapping[str, Any] = rest(harmless=())


class Permissions(Section):
    """`[permissions.*]`"""

    description: str | None = key("The purpose of the profile.")
    extends: str | None = key("The profile that it adds to.")
    workspace_roots: Mapping[str, bool] = table(
        "Make a folder a further root of the workspace, or not."
    )
    filesystem: Filesystem = table()
    network: Network = table()
    others: Mapping[str, Any] = rest("Other keys of Codex for a profile.")


class Protection(Section):
    """`[protection]`"""

    secrets: Literal["deny", "allow"] | None = key(
        "`deny` keeps `.env*`, `*.pem`, private keys and `~/.ssh` from commands and "
        "from the model. Not in a project."
    )
    deny: tuple[str, ...] | None = key(
        "Further paths and patterns that are kept from commands and from the model, "
        "in every sandbox mode. Not in a project."
    )
    allow_domains: tuple[str, ...] | None = key(
        "Hosts that commands may reach in every sandbox mode; they reach no others. "
        "Not in a project."
    )


class Project(Section):
    """`[projects.*]`"""

    trust_level: Literal["trusted", "untrusted"] | None = key(
        "The trust in a project, by its path."
    )
