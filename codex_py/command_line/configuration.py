"""Makes the configuration from the files and the options of a command line; the options win."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from codex_py.command_line.arguments import Arguments, checked_result, given_options
from codex_py.command_line.parser import working_folder
from codex_py.config.config import Config, load_config
from codex_py.config.layers import merged
from codex_py.config.overrides import unknown_of
from codex_py.config.paths import folders_between
from codex_py.config.project_trust import trust_project
from codex_py.errors import CodexError, ConfigError, UsageError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.streams.standard import tell


def load_exec_config(arguments: Arguments, environment: Mapping[str, str]) -> Config:
    """The configuration of a run without questions.

    Raises:
        CodexError: the working folder does not exist; or it is neither in a git repository nor
            trusted, and no option allows that.
        ConfigError: see `load_config`.
    """
    # A run cannot ask its user, whatever the files or the options say. With these options, somebody
    # answers later, or a model does.
    has_answers = any(each.asks_for_approvals for each in arguments.of_extensions)
    if has_answers:
        policy = "on-request"
    else:
        policy = "never"
    config = load_session_config(arguments, environment, {"approval_policy": policy})
    allowed = arguments.skip_git_repo_check or arguments.bypass
    if not (allowed or config.inside_git or config.trust == "trusted"):
        raise CodexError(
            "Not inside a trusted directory and --skip-git-repo-check was not specified."
            " To use this folder: git init, or `codex-py exec --trust`.",
            code="untrusted_directory",
        )
    return config


def read_config(
    arguments: Arguments,
    environment: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration of the working folder.

    Args:
        flags: settings in the form of `config.toml`, which win over all others.

    Raises:
        CodexError: the folder does not exist.
        ConfigError: see `load_config`.
    """
    sources = config_sources(arguments, environment)
    sources["flags"] |= flags or {}
    return load_config(**sources, strict=arguments.strict_config)


def folder_config(
    arguments: Arguments,
    environment: Mapping[str, str],
    folder: str | None,
    table: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration of a client's thread. Raises as `read_config` does.

    Args:
        folder: the thread's folder, relative to the working folder of the command line; None: that
            one.
        table: settings in the form of `config.toml`, which win over all others.
    """
    place = str(working_folder(arguments.cd) / (folder or "."))
    return read_config(replace(arguments, cd=place), environment, table)


def nested_table(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert settings with dotted names, as clients send them, to the form of `config.toml`.

    Raises:
        CodexError: the parent of a setting is a plain value.
    """
    table: dict[str, Any] = {}
    for key, value in settings.items():
        *parents, last = key.split(".")
        below = table
        for parent in parents:
            inner = below.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise CodexError(
                    f"`config`: {key!r} is below a plain value", code="config"
                )
            below = cast("dict[str, Any]", inner)
        below[last] = value
    return table


def warn_of_config(config: Config) -> None:
    for warning in config.warnings:
        tell(f"Warning: {warning}")


def config_sources(
    arguments: Arguments, environment: Mapping[str, str]
) -> dict[str, Any]:
    """The keyword arguments of `load_config` and `read_layers`.

    Raises:
        CodexError: the working folder does not exist.
    """
    return {
        "cwd": working_folder(arguments.cd),
        "environment": environment,
        "overrides": [*arguments.overrides, *arguments.limits],
        "flags": _flags(arguments),
        "profile": arguments.profile,
        "ignore_user_config": arguments.ignore_user_config,
    }


def _flags(arguments: Arguments) -> dict[str, Any]:
    """The settings that options give, in the form of `config.toml`."""
    flags = {
        "model": arguments.model,
        "approval_policy": arguments.approval,
        "sandbox_mode": arguments.sandbox,
        "protection": _protection(arguments) or None,
        "allow_unenforced": list(arguments.allow_unenforced) or None,
    }
    if arguments.full_auto:
        flags["sandbox_mode"] = arguments.sandbox or "workspace-write"
    if arguments.bypass:
        flags["sandbox_mode"] = "danger-full-access"
        # Unlike the mode, this also drops a profile's denials.
        flags["default_permissions"] = ":danger-full-access"
    if arguments.log:
        flags["log_file"] = str(Path(arguments.log).absolute())
    flags = {key: value for key, value in flags.items() if value is not None}
    for options in arguments.of_extensions:
        flags = merged(flags, _settings_of(options, arguments))
    return flags


def _settings_of(options: Any, arguments: Arguments) -> Mapping[str, Any]:
    """The settings that options of an extension give.

    Raises:
        ConfigError: there is no such setting, so the options would have no effect.
    """
    settings: Mapping[str, Any] = checked_result(
        options, "settings", options.settings(arguments), Mapping, "a mapping"
    )
    problem = unknown_of(settings)
    if problem is not None:
        names = given_options(options)
        raise ConfigError(f"{names} has no effect, because {problem}")
    return settings


def _protection(arguments: Arguments) -> dict[str, Any]:
    given = {"deny": arguments.deny, "allow_domains": arguments.allow_domain}
    found: dict[str, Any] = {
        name: list(values) for name, values in given.items() if values
    }
    if arguments.bypass:
        found["secrets"] = "allow"
    return found


def load_session_config(
    arguments: Arguments, environment: Mapping[str, str], flags: Mapping[str, str]
) -> Config:
    """The configuration of a session. Arguments and errors are those of `read_config`.

    `--trust` is saved first, as if the user had answered the terminal's first question with yes.
    """
    config = _session_config(arguments, environment, flags)
    if arguments.trust and config.trust != "untrusted":
        trust_project(config.home, folders_between(config.project_root, config.cwd))
        # Trust adds the project's own files, and changes the default sandbox.
        config = _session_config(arguments, environment, flags)
    return config


def _session_config(
    arguments: Arguments, environment: Mapping[str, str], flags: Mapping[str, str]
) -> Config:
    config = read_config(arguments, environment, flags)
    if arguments.oss:
        from codex_py.app.providers.local_servers import local_settings  # 65 ms

        wanted = arguments.local_provider or config.settings.oss_provider
        local = local_settings(config, wanted, arguments.model, environment)
        config = read_config(arguments, environment, {**flags, **local})
    for name in arguments.add_dir:
        folder = config.cwd / name
        if not os.path.isdir(folder):
            raise UsageError(f"--add-dir: there is no folder {name!r}")
    warnings: list[str] = []
    if arguments.local_provider is not None and not arguments.oss:
        warnings.append("--local-provider has no effect without --oss.")
    if arguments.agent_events and not arguments.json:
        warnings.append("--agent-events has no effect without --json.")
    return replace(config, warnings=(*config.warnings, *warnings))


def sandbox_summary(policy: SandboxPolicy, cwd: Path) -> str:
    """A text such as `read-only` or
    `workspace-write [workdir, /tmp, $TMPDIR, …] (network access enabled)`."""
    if policy.mode != "workspace-write":
        return policy.mode
    places = ["workdir"]
    if not policy.exclude_slash_tmp:
        places.append("/tmp")
    if not policy.exclude_tmpdir_env_var:
        places.append("$TMPDIR")
    places += [str(root) for root in policy.writable_roots if root != cwd]
    if policy.network_access:
        network = " (network access enabled)"
    else:
        network = ""
    return f"workspace-write [{', '.join(places)}]{network}"
