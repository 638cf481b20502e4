"""`codex-py plugin add`, `list`, `show` and `remove`."""

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from codex_py.command_line.stopping import raise_when_stopped
from codex_py.command_line.subcommand import command_config, command_parser, required
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
from codex_py.streams.standard import print_json, print_out, print_table, tell
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
        folder = plugins_folder(config.home)
        try:
            plugin = read_plugin(folder, source.files, source.origin)
        except ValueError as error:
            text = f"{source_name} cannot be added: {error}"
            raise CodexError(text, code="plugin") from error
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
    config = command_config(options, environment, warns=False)
    if not remove(config.home, name):
        raise _unknown(name)
    return print_out(f"Removed the plugin {name}.\n")


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print all plugins, sorted by name. Returns the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    config = command_config(options, environment, warns=False)
    plugins = find_plugins(config.home)
    entries: list[dict[str, Any]] = []
    for plugin in plugins.found:
        summary = {key: getattr(plugin, key) for key in _SUMMARY}
        entries.append({**summary, "error": None})
    for name, why in plugins.unusable.items():
        entries.append({"name": name, "error": why})
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
    found = {plugin.name: plugin for plugin in plugins.found}
    plugin = found.get(name)
    if plugin is None:
        raise _unknown(name)
    description = _description(_with(config, plugin), plugin, environment)
    lines = [f"{on_one_line(line)}\n" for line in description]
    return print_out("".join(lines))


def _with(config: Config, plugin: Plugin) -> Config:
    """The configuration with only this plugin, and with its hooks switched on."""
    return replace(config, plugins=(plugin,), features=Features({}))


def _description(
    config: Config,
    plugin: Plugin,
    environment: Mapping[str, str],
) -> Iterator[str]:
    """Yield lines about a plugin, with all that it would run. `config`: see `_with`."""
    name = f"{plugin.name} {plugin.version}".rstrip()
    if plugin.author:
        name += f", by {plugin.author}"
    yield f"{name}: {plugin.description or 'no description'}"
    if plugin.commit:
        yield f"from {plugin.source} at {plugin.commit}"
    else:
        yield f"from {plugin.source}"
    yield "It runs with your rights, outside of the sandbox:"
    runs = [_hook_line(hook) for hook in _hooks(config, plugin, environment)]
    runs += [_server_line(name, table) for name, table in plugin.servers.items()]
    yield from _indented(runs)
    yield "It tells the model:"
    yield from _indented(_model_lines(config, plugin, environment))
    for fault in _faults(config, environment):
        if str(plugin.root) in fault:
            yield f"Mistake in it: {fault}"


def _indented(lines: Sequence[str]) -> list[str]:
    """The lines with two spaces before each; without lines, the word `nothing`."""
    return [f"  {line}" for line in lines or ("nothing",)]


def _model_lines(
    config: Config,
    plugin: Plugin,
    environment: Mapping[str, str],
) -> list[str]:
    """The lines about the agents, skills and commands of a plugin."""
    lines: list[str] = []
    for role in find_roles(config, environment).found.values():
        if role.source in plugin.agents:
            tools = _named_tools(role.tools)
            lines.append(f"agent {role.name}, with {tools}: {role.description}")
    skills = find_skills(config, environment).found
    own_skills = [skill for skill in skills if skill.path in plugin.skills]
    lines += [f"skill ${skill.name}: {skill.description}" for skill in own_skills]
    lines += [f"command /{plugin.name}:{name}" for name in plugin.commands]
    return lines


def _faults(config: Config, environment: Mapping[str, str]) -> list[str]:
    """The warnings about all files that plugins, the user and the project may have."""
    return [
        *find_hooks(config, environment).warnings,
        *find_roles(config, environment).warnings,
        *find_skills(config, environment).warnings,
        *find_custom_prompts(config, environment).warnings,
    ]


def _hook_line(hook: Hook) -> str:
    if hook.kind == "command":
        action = hook.command
    else:
        action = f"the tool {hook.server}/{hook.tool}"
    # Otherwise, lines below a comment would look like a part of it.
    action = action.replace("\n", " \u23ce ")
    if hook.matcher:
        return f"hook {hook.event} ({hook.matcher}): {action}"
    return f"hook {hook.event}: {action}"


def _server_line(name: str, table: Mapping[str, Any]) -> str:
    """Say how a server is reached, and which variables of the user it gets. `table`: its
    settings."""
    line = f"MCP server {name}: {table.get('url') or _server_command(table)}"
    variables = [
        *table.get("env_vars", ()),
        *table.get("env_http_headers", {}).values(),
    ]
    if table.get("bearer_token_env_var"):
        variables.append(table["bearer_token_env_var"])
    if variables:
        names = ", ".join(str(variable) for variable in variables)
        line += f", which gets {names} of your environment"
    return line


def _server_command(table: Mapping[str, Any]) -> str:
    given = plugin_variables(Path())
    words: list[str] = []
    for name, value in table.get("env", {}).items():
        if name not in given:
            words.append(f"{name}={value}")
    words += [table.get("command", ""), *table.get("args", ())]
    command = shlex.join(words)
    if "cwd" in table:
        # The server's program may be found in that folder.
        command += f", in {table['cwd']}"
    return command


def _hooks(
    config: Config,
    plugin: Plugin,
    environment: Mapping[str, str],
) -> list[Hook]:
    """The hooks of a plugin. `config`: see `_with`."""
    found = find_hooks(config, environment).found
    return [hook for hook in found if hook.source in plugin.hooks]


def _agreed() -> bool:
    """Ask the user on the terminal. Raises a `UsageError` if standard input is none."""
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
