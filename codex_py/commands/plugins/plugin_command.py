"""`codex-py plugin add`, `list`, `show` and `remove`."""

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from codex_py.command_line.stopping import raise_when_stopped
from codex_py.command_line.subcommand import (
    command_config,
    command_parser,
    print_table,
    required,
)
from codex_py.commands.plugins.store import (
    install,
    read_source,
    remove,
    require_new,
    workspace,
)
from codex_py.config.config import Config
from codex_py.config.custom_prompts import find_custom_prompts
from codex_py.config.declared.features import Features
from codex_py.config.hooks import Hook, find_hooks, trust
from codex_py.config.plugin_files import find_plugins, read_plugin
from codex_py.config.plugins import Plugin, plugin_variables, plugins_folder
from codex_py.config.roles import find_roles
from codex_py.config.skills import find_skills
from codex_py.errors import CodexError, ExitCode, UsageError
from codex_py.streams.standard import print_json, print_out, tell
from codex_py.streams.terminal import on_one_line

_SUMMARY: Final = ("name", "version", "description", "author", "source", "commit")


def run_add(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Show the contents of a plugin, ask, and add it. Returns the exit code."""
    parser = command_parser("source", "--yes")
    parser.add_argument("--ref")
    options = parser.parse_args(list(argv))
    source_name = required(
        options.source, "plugin: codex-py plugin add FOLDER-OR-ADDRESS"
    )
    raise_when_stopped()
    config = command_config(options, environment, warns=False)
    with workspace(config.home) as made:
        source = read_source(source_name, options.ref, made, config, environment)
        try:
            plugin = read_plugin(
                plugins_folder(config.home), source.files, source.origin
            )
        except ValueError as error:
            raise CodexError(
                f"{source_name} cannot be added: {error}", code="plugin"
            ) from error
        require_new(config.home, plugin.name)
        config = _with(config, plugin)
        for line in _description(config, plugin, environment):
            tell(on_one_line(line))
        if not options.yes and not _agreed():
            tell("Nothing was added.")
            return ExitCode.TURN_FAILED
        install(config.home, made, plugin, source)
    # The user has just seen exactly these hooks.
    trust(config.home, _hooks(config, plugin, environment))
    return print_out(f"Added the plugin {plugin.name}. New sessions use it.\n")


def run_remove(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Remove a plugin. Returns the exit code."""
    options = command_parser("name").parse_args(list(argv))
    name = required(options.name, "plugin: codex-py plugin remove NAME")
    if not remove(command_config(options, environment, warns=False).home, name):
        raise _unknown(name)
    return print_out(f"Removed the plugin {name}.\n")


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print all plugins, sorted by name. Returns the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    plugins = find_plugins(command_config(options, environment, warns=False).home)
    entries: list[dict[str, Any]] = [
        {**{key: getattr(plugin, key) for key in _SUMMARY}, "error": None}
        for plugin in plugins.found
    ]
    entries += [{"name": name, "error": why} for name, why in plugins.unusable.items()]
    entries.sort(key=lambda entry: entry["name"])
    if options.json:
        return print_json(entries, indent=2, ensure_ascii=False)
    if not entries:
        return print_out("There are no plugins. Try `codex-py plugin add FOLDER`.\n")
    rows: list[tuple[str, ...]] = [("NAME", "VERSION", "FROM", "STATE")]
    for entry in entries:
        if entry["error"]:
            state = f"not used: {entry['error']}"
        else:
            state = "ok"
        version = entry.get("version") or "-"
        source = entry.get("source", "-")
        rows.append((entry["name"], version, source, state))
    return print_table(rows)


def run_show(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the contents of a plugin. Returns the exit code."""
    options = command_parser("name").parse_args(list(argv))
    name = required(options.name, "plugin: codex-py plugin show NAME")
    config = command_config(options, environment, warns=False)
    plugins = find_plugins(config.home)
    why = plugins.unusable.get(name)
    if why is not None:
        raise CodexError(f"the plugin {name} is not used: {why}", code="plugin")
    found = [plugin for plugin in plugins.found if plugin.name == name]
    if not found:
        raise _unknown(name)
    lines = _description(_with(config, found[0]), found[0], environment)
    return print_out("".join(f"{on_one_line(line)}\n" for line in lines))


def _with(config: Config, plugin: Plugin) -> Config:
    """The configuration with only this plugin, and with its hooks switched on."""
    return replace(config, plugins=(plugin,), features=Features({}))


def _description(
    config: Config, plugin: Plugin, environment: Mapping[str, str]
) -> Iterator[str]:
    """Lines about a plugin, including everything that it would run. `config`: see `_with`."""
    author = f", by {plugin.author}" if plugin.author else ""
    name = f"{plugin.name} {plugin.version}".rstrip()
    yield f"{name}{author}: {plugin.description or 'no description'}"
    yield f"from {plugin.source}{plugin.commit and f' at {plugin.commit}'}"
    yield "It runs with your rights, outside of the sandbox:"
    hooks = [_hook_line(hook) for hook in _hooks(config, plugin, environment)]
    servers = [_server_line(name, table) for name, table in plugin.servers.items()]
    yield from (f"  {line}" for line in (*hooks, *servers) or ("nothing",))
    yield "It tells the model:"
    roles = find_roles(config, environment)
    skills = find_skills(config, environment)
    texts = [
        f"agent {role.name}, with {_named_tools(role.tools)}: {role.description}"
        for role in roles.found.values()
        if role.source in plugin.agents
    ]
    texts += [
        f"skill ${skill.name}: {skill.description}"
        for skill in skills.found
        if skill.path in plugin.skills
    ]
    texts += [f"command /{plugin.name}:{name}" for name in plugin.commands]
    yield from (f"  {line}" for line in texts or ("nothing",))
    faults = (
        *find_hooks(config, environment).warnings,
        *roles.warnings,
        *skills.warnings,
    )
    faults += find_custom_prompts(config, environment).warnings
    yield from (
        f"Mistake in it: {fault}" for fault in faults if str(plugin.root) in fault
    )


def _hook_line(hook: Hook) -> str:
    matcher = f" ({hook.matcher})" if hook.matcher else ""
    if hook.kind == "command":
        what = hook.command
    else:
        what = f"the tool {hook.server}/{hook.tool}"
    # Otherwise, lines below a comment would look like a part of it.
    what = what.replace("\n", " \u23ce ")
    return f"hook {hook.event}{matcher}: {what}"


def _server_line(name: str, table: Mapping[str, Any]) -> str:
    variables = [
        *table.get("env_vars", ()),
        *table.get("env_http_headers", {}).values(),
        *filter(None, [table.get("bearer_token_env_var")]),
    ]
    own = {
        k: v
        for k, v in table.get("env", {}).items()
        if k not in plugin_variables(Path())
    }
    words = [
        *(f"{k}={v}" for k, v in own.items()),
        table.get("command", ""),
        *table.get("args", ()),
    ]
    # The server's program may be found in that folder.
    place = f", in {table['cwd']}" if "cwd" in table else ""
    what = table.get("url") or shlex.join(words) + place
    if variables:
        what += f", which gets {', '.join(map(str, variables))} of your environment"
    return f"MCP server {name}: {what}"


def _hooks(
    config: Config, plugin: Plugin, environment: Mapping[str, str]
) -> list[Hook]:
    found = find_hooks(config, environment).found
    return [hook for hook in found if hook.source in plugin.hooks]


def _agreed() -> bool:
    if not os.isatty(0):
        raise UsageError(
            "nobody can be asked here whether to trust the plugin; to add it, pass --yes"
        )
    tell("Trust it, and add it? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _unknown(name: str) -> CodexError:
    return CodexError(
        f"there is no plugin {name!r}; see `codex-py plugin list`", code="plugin"
    )


def _named_tools(tools: Collection[str] | None) -> str:
    if tools is None:
        return "all tools"
    return ", ".join(sorted(tools)) or "no tools"
