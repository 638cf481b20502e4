"""The configuration of a run: files, with the options of the command line on top."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from codex_py.config.config import Config, load_config
from codex_py.config.paths import folders_between
from codex_py.config.project_trust import trust_project
from codex_py.errors import CodexError
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.folder import working_folder

_OSS_MODELS = {"ollama": "gpt-oss:20b", "lmstudio": "openai/gpt-oss-20b"}


def load_exec_config(arguments: Arguments, environment: Mapping[str, str]) -> Config:
    """The configuration of a run that may be where it is. `--trust` is written down first.

    Raises:
        CodexError: the folder to work in is not there; or it is neither in a git repository nor
            trusted, and no option allows that.
        ConfigError: see `load_config`.
    """
    config = _load(arguments, environment)
    if arguments.trust and config.trust != "untrusted":
        trust_project(config.home, folders_between(config.project_root, config.cwd))
        # Trust lets the project's own files and another default sandbox in.
        config = _load(arguments, environment)
    allowed = arguments.skip_git_repo_check or arguments.bypass
    if not (allowed or config.inside_git or config.trust == "trusted"):
        raise CodexError(
            "Not inside a trusted directory and --skip-git-repo-check was not specified.",
            code="untrusted_directory",
        )
    return config


def load_terminal_config(arguments: Arguments, environment: Mapping[str, str]) -> Config:
    """The configuration of a session with somebody who can be asked. `--trust` answers the first question.

    Raises:
        CodexError: the folder to work in is not there.
        ConfigError: see `load_config`.
    """
    config = _load(arguments, environment, has_user=True)
    if arguments.trust and config.trust != "untrusted":
        trust_project(config.home, folders_between(config.project_root, config.cwd))
        config = _load(arguments, environment, has_user=True)
    return config


def _load(
    arguments: Arguments, environment: Mapping[str, str], *, has_user: bool = False
) -> Config:
    unasked = {} if has_user else {"approval_policy": "never"}

    def read(**more: str) -> Config:
        return load_config(
            cwd=cwd,
            environment=environment,
            overrides=arguments.overrides,
            # Where there is nobody to ask, nothing is asked, whatever is configured.
            flags={**more, **flags(arguments), **unasked},
            profile=arguments.profile,
            ignore_user_config=arguments.ignore_user_config,
            strict=arguments.strict_config,
        )

    cwd = working_directory(arguments)
    config = _with_warnings(read(), arguments)
    if not arguments.oss:
        return config
    provider = arguments.local_provider or config.oss_provider
    if provider not in _OSS_MODELS:
        raise CodexError(
            "--oss needs --local-provider, or `oss_provider` in config.toml: "
            + ", ".join(_OSS_MODELS),
            code="config",
        )
    return _with_warnings(read(model_provider=provider, model=_OSS_MODELS[provider]), arguments)


def _with_warnings(config: Config, arguments: Arguments) -> Config:
    """What of the command line has no effect, where Codex is silent."""
    warnings = [
        f"--add-dir {name}: there is no such folder, so nothing can be written there."
        for name in arguments.add_dir
        if not (config.cwd / name).is_dir()
    ]
    if arguments.local_provider is not None and not arguments.oss:
        warnings.append("--local-provider has no effect without --oss.")
    return replace(config, warnings=(*config.warnings, *warnings)) if warnings else config


def working_directory(arguments: Arguments) -> Path:
    """Where to work: absolute, and without links.

    Raises:
        CodexError: it is not a folder.
    """
    return working_folder(arguments.cd or ".")


def flags(arguments: Arguments) -> dict[str, Any]:
    """The settings that have options of their own, as a table for `load_config`."""
    table: dict[str, Any] = {}
    if arguments.model is not None:
        table["model"] = arguments.model
    if arguments.approval is not None:
        table["approval_policy"] = arguments.approval
    if arguments.bypass:
        table["sandbox_mode"] = "danger-full-access"
    elif arguments.sandbox is not None:
        table["sandbox_mode"] = arguments.sandbox
    elif arguments.full_auto:
        table["sandbox_mode"] = "workspace-write"
    if arguments.allow_unenforced:
        table["allow_unenforced"] = list(arguments.allow_unenforced)
    return table
