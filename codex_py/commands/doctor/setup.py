"""Checks of the setup: configuration files, the key, the provider, MCP servers, hooks, extensions,
sessions."""

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from codex_py.app.installed import used_extensions
from codex_py.app.login_status import plan_facts
from codex_py.app.model import configured_provider, pays_by_plan, provider_key
from codex_py.app.providers.first_answer import first_answer
from codex_py.app.stored_login import masked
from codex_py.app.user_programs import UserPrograms, user_programs
from codex_py.commands.doctor.check import Check, CheckResult
from codex_py.commands.doctor.machine import home_check, sandbox_check
from codex_py.config.check import dotted, unused_keys
from codex_py.config.config import Config
from codex_py.config.declared.section import raw
from codex_py.config.hooks import find_hooks
from codex_py.config.mcp import McpServerConfig
from codex_py.errors import CodexError, ConfigError, ModelError
from codex_py.model.auth import ProviderKey
from codex_py.rollout.reader import read_session
from codex_py.rollout.records import SESSIONS

_MOST_SESSIONS = 20
"""The number of newest sessions that are read."""
_LARGEST_SESSION = 2_000_000
"""Files of more than this number of bytes are not read."""


def setup_checks(
    config: Config,
    environment: Mapping[str, str],
    *,
    asks_provider: bool,
) -> list[Check]:
    """The checks that need the configuration. `asks_provider`: send a request to the model."""
    return [
        Check("config.load", "config", lambda: _configuration(config)),
        Check("auth.credentials", "auth", lambda: _key(config, environment)),
        Check(
            "network.provider_reachability",
            "reachability",
            lambda: _provider(config, environment, asks=asks_provider),
        ),
        Check("sandbox.helpers", "sandbox", lambda: sandbox_check(config, environment)),
        Check("mcp.config", "mcp", lambda: _servers(config, environment)),
        Check("hooks.trust", "hooks", lambda: _hooks(config, environment)),
        Check("extensions.load", "extensions", lambda: _extensions(config)),
        Check("state.paths", "state", lambda: home_check(environment, config.home)),
        Check("state.sessions", "threads", lambda: _sessions(config.home)),
    ]


def _configuration(config: Config) -> CheckResult:
    unused = [
        f"{dotted(key)} ({config.layers.where(key)})"
        for key in unused_keys(raw(config.settings))
    ]
    # `unused` says the same.
    warnings = [
        text for text in config.warnings if "no effect in this version" not in text
    ]
    requirements = "none"
    if config.requirements.file.values:
        requirements = str(config.requirements.file.path)
    details = {
        "CODEX_HOME": str(config.home),
        "cwd": str(config.cwd),
        "layers, strongest first": _layer_names(config),
        "requirements": requirements,
        "model": config.model,
        "model provider": config.model_provider,
        "project trust": config.trust or "none",
        "settings without effect": unused,
        "warnings": warnings,
    }
    if config.unenforced:
        remedy = "\n".join(config.unenforced)
        return CheckResult("fail", "no session starts", remedy, details)
    if warnings:
        if len(warnings) == 1:
            text = "loaded, with a warning"
        else:
            text = f"loaded, with {len(warnings)} warnings"
        return CheckResult("warning", text, "\n".join(warnings), details)
    if unused:
        text = f"loaded; {len(unused)} settings have no effect here"
    else:
        text = "loaded"
    return CheckResult("ok", text, details=details)


def _layer_names(config: Config) -> list[str]:
    """The layers of the configuration, each once, with their files."""
    names: list[str] = []
    for layer in config.layers.layers:
        if layer.path:
            names.append(f"{layer.name}: {layer.path}")
        else:
            names.append(layer.name)
    return list(dict.fromkeys(names))


def _key(config: Config, environment: Mapping[str, str]) -> CheckResult:
    provider = configured_provider(config, environment)
    details = {"model provider": provider.id}
    if provider.env_key is None and provider.auth is not None:
        return CheckResult(
            "ok", "a program prints the key; it was not run", details=details
        )
    try:
        key = provider_key(config, provider, environment)
    except ModelError as error:
        return CheckResult("fail", "there is no usable key", str(error), details)
    if key is None:
        text = f"the provider {provider.id} needs no key"
        return CheckResult("ok", text, details=details)
    if key.is_token:
        return _plan(key, details)
    shown = masked(key.value)
    details |= {"source": key.source, "key": shown}
    return CheckResult("ok", f"{shown} from {key.source}", details=details)


def _plan(key: ProviderKey, details: Mapping[str, str]) -> CheckResult:
    """The result for a login with ChatGPT, or for a token of it."""
    facts = plan_facts(key)
    end = "not known"
    if facts.expires_at is not None:
        with suppress(OverflowError, ValueError, OSError):
            end = time.strftime("%Y-%m-%d %H:%M", time.localtime(facts.expires_at))
    details = {
        **details,
        "source": key.source,
        "login": "ChatGPT",
        "plan": facts.plan or "not known",
        "token valid until": end,
    }
    text = f"ChatGPT plan {facts.plan}".rstrip()
    text = f"{text}, from {key.source}"
    if not facts.has_expired:
        return CheckResult("ok", text, details=details)
    if facts.is_renewed:
        text = f"{text}; its token has expired, and the next request renews it"
        return CheckResult("ok", text, details=details)
    remedy = "Sign in with `codex-py login`, or replace the token."
    return CheckResult("fail", f"{text}: the token has expired", remedy, details)


def _provider(
    config: Config,
    environment: Mapping[str, str],
    *,
    asks: bool,
) -> CheckResult:
    provider = configured_provider(config, environment)
    if pays_by_plan(config, provider, environment):
        provider = provider.for_tokens()
    details = {
        "address": provider.shown_url,
        "wire API": provider.wire_api,
        "model": config.model,
    }
    if not asks:
        text = f"{provider.id} was not asked; `codex-py doctor --provider` asks it"
        return CheckResult("ok", text, details=details)
    try:
        asyncio.run(first_answer(config, provider, config.model, environment))
    except CodexError as error:
        remedy = f"Look at the address, the key and the proxy, or try `codex-py providers test {provider.id}`."
        return CheckResult("fail", str(error), remedy, details)
    return CheckResult("ok", f"{provider.id} answers", details=details)


def _servers(config: Config, environment: Mapping[str, str]) -> CheckResult:
    programs = user_programs(config, environment)
    wanted = {
        name: server for name, server in config.mcp_servers.items() if server.enabled
    }
    if not wanted:
        return CheckResult("ok", "none is configured")
    problems: dict[str, str] = {}
    for name, server in wanted.items():
        problem = _problem(server, config.cwd, programs, environment)
        if problem is not None:
            problems[name] = problem
    details = {name: problems.get(name, "ready to be started") for name in wanted}
    if not problems:
        text = f"{len(wanted)} configured, none was started"
        return CheckResult("ok", text, details=details)
    if any(wanted[name].required for name in problems):
        status = "fail"
    else:
        status = "warning"
    text = f"{len(problems)} of {len(wanted)} cannot start"
    advice = [f"{name}: {problem}." for name, problem in problems.items()]
    first = next(iter(problems))
    advice.append(f"`codex-py mcp test {first}` says more.")
    return CheckResult(status, text, "\n".join(advice), details)


def _problem(
    server: McpServerConfig,
    project: Path,
    programs: UserPrograms,
    environment: Mapping[str, str],
) -> str | None:
    """Say in a clause why a server cannot start; None if nothing is known. Starts nothing."""
    token = server.bearer_token_env_var
    if token is not None and not environment.get(token):
        return f"the variable {token} is not set"
    if server.command is None:
        return None
    if server.cwd is None:
        cwd = programs.cwd()
    else:
        cwd = project / server.cwd
    try:
        found = programs.find(server.command, environment, cwd)
    except FileNotFoundError as error:
        return f"{server.command!r} cannot be found: {error.strerror}"
    if Path(found).is_absolute() and not os.access(found, os.X_OK):
        return f"{found} is not there, or cannot be run"
    return None


def _hooks(config: Config, environment: Mapping[str, str]) -> CheckResult:
    hooks = find_hooks(config, environment)
    details = {hook.key: hook.state for hook in hooks.found}
    if hooks.warnings:
        remedy = "\n".join(hooks.warnings)
        return CheckResult("warning", "some are left out", remedy, details)
    count = len(hooks.to_review)
    if count:
        text = f"{count} new or changed: they do not run"
        remedy = "Review them with /hooks in the terminal."
        return CheckResult("warning", text, remedy, details)
    if details:
        text = f"{len(details)} found"
    else:
        text = "none is configured"
    return CheckResult("ok", text, details=details)


def _extensions(config: Config) -> CheckResult:
    details: dict[str, str] = {}
    problems: list[str] = []
    for name, load in used_extensions(config).items():
        try:
            load()
        except ConfigError as error:
            details[name] = str(error)
            problems.append(str(config.layers.located(error)))
        else:
            details[name] = "loaded"
    if problems:
        return CheckResult("fail", "no session starts", "\n".join(problems), details)
    if not details:
        return CheckResult("ok", "none is configured")
    return CheckResult("ok", f"{len(details)} loaded", details=details)


def _sessions(home: Path) -> CheckResult:
    # The paths of sessions sort by time.
    files = sorted((home / SESSIONS).rglob("rollout-*.jsonl"), reverse=True)
    newest = [path for path in files[:_MOST_SESSIONS] if path.is_file()]
    if not newest:
        return CheckResult("ok", "there are none yet")
    problems: list[str] = []
    for path in newest:
        if path.stat().st_size > _LARGEST_SESSION:
            continue
        try:
            damaged = read_session(path).damaged_lines
        except CodexError as error:
            problems.append(str(error))
            continue
        if damaged:
            problems.append(f"{path} is resumed without its damaged lines: {damaged}.")
    if problems:
        text = f"{len(problems)} of the newest {len(newest)} are damaged"
        return CheckResult("warning", text, "\n".join(problems))
    return CheckResult("ok", f"the newest {len(newest)} can be read")
