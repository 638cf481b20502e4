"""Where hooks come from, and which of them the user trusts. Keys, hashes and warnings are those of Codex 0.171.

Also tests `config/hook_files.py` and `config/hook_names.py`.
"""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.config import load_config
from codex_py.config.hook_places import has_hooks
from codex_py.config.hooks import Hook, Hooks, enable, find_hooks, trust
from codex_py.errors import ConfigError
from tests.config.conftest import Place
from tests.support.codex import hooks_of_codex, needs_codex

_EVENT = "PreToolUse"


def hooks(*handlers: Any, event: str = _EVENT, **group: Any) -> str:
    """A `hooks.json` with one group."""
    return json.dumps({"hooks": {event: [{"hooks": list(handlers), **group}]}})


def command(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **more}


def toml(text: str) -> str:
    return (
        f'[[hooks.PreToolUse]]\nhooks = [{{ type = "command", command = "{text}" }}]\n'
    )


def found(place: Place, *, overrides: Sequence[str] = ()) -> Hooks:
    config = place.load(overrides=overrides)
    result = find_hooks(config, place.environment)
    assert has_hooks(config) or not result.found
    return result


def commands(place: Place, *, overrides: Sequence[str] = ()) -> list[str]:
    return [hook.command for hook in found(place, overrides=overrides).found]


def only(place: Place) -> Hook:
    result = found(place)
    (hook,) = result.found
    return hook


def project_hooks(place: Place, text: str, folder: Path | None = None) -> Path:
    path = (folder or place.root) / ".codex" / "hooks.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_hooks_there_is_nothing_to_load(place: Place):
    place.trusted('[hooks.state.a]\ntrusted_hash = "x"')
    assert not has_hooks(place.load())
    assert found(place) == Hooks()


def test_hooks_of_all_layers_run_in_the_order_of_the_configuration(place: Place):
    write(place.system / "hooks.json", hooks(command("system file")))
    write(place.system / "config.toml", toml("system"))
    write(place.system / "managed_config.toml", toml("managed"))
    place.user(hooks(command("user file")), "hooks.json")
    place.trusted(toml("user"))
    write(place.home / "codex-py" / "config.toml", toml("own"))
    place.user(toml("profile"), "work.config.toml")
    project_hooks(place, hooks(command("root file")))
    place.project(toml("root"))
    project_hooks(place, hooks(command("nearest file")), place.cwd)
    config = place.load(
        profile="work",
        overrides=['hooks.PreToolUse=[{hooks=[{type="command",command="option"}]}]'],
    )
    assert [hook.command for hook in find_hooks(config, place.environment).found] == [
        *("system file", "system", "user file", "user", "own", "profile"),
        *("root file", "root", "nearest file", "option", "managed"),
    ]


def test_a_hook_has_all_that_is_configured(place: Place):
    path = place.user(
        hooks(
            command("a"),
            command("b", timeout=5, statusMessage="wait", **{"async": True}),
            {"type": "mcp_tool", "server": "s", "tool": "t", "input": {"a": 1}},
            matcher="Bash",
        ),
        "hooks.json",
    )
    first, second, third = found(place).found
    assert (first.event, first.source) == (_EVENT, path)
    assert (first.kind, first.matcher, first.timeout_s, first.is_async) == (
        *("command", "Bash", 600, False),
    )
    assert (second.timeout_s, second.is_async) == (5, True)
    assert second.status_message == "wait"
    assert (third.kind, third.server, third.tool, third.arguments) == (
        *("mcp_tool", "s", "t", {"a": 1}),
    )
    assert [hook.key for hook in (first, third)] == [
        f"{path}:pre_tool_use:0:0",
        f"{path}:pre_tool_use:0:2",
    ]


@pytest.mark.parametrize(
    ("event", "timeout_s", "matcher"),
    [
        *(("Stop", 600, None), ("UserPromptSubmit", 600, None), ("Interrupt", 1, None)),
        *(("SessionEnd", 1, "x"), ("SessionStart", 600, "x")),
    ],
)
def test_an_event_has_its_own_defaults(
    place: Place, event: str, timeout_s: int, matcher: str | None
):
    place.user(hooks(command("a"), event=event, matcher="x"), "hooks.json")
    hook = only(place)
    assert (hook.timeout_s, hook.matcher) == (timeout_s, matcher)


def test_a_hook_for_which_the_user_waits_has_three_seconds_at_most(place: Place):
    place.user(hooks(command("a", timeout=60), event="SessionEnd"), "hooks.json")
    assert only(place).timeout_s == 3


def test_both_forms_in_one_folder_run_with_a_warning(place: Place):
    path = place.user(hooks(command("a")), "hooks.json")
    config = place.user(toml("b"))
    assert commands(place) == ["a", "b"]
    assert found(place).warnings == (
        f"loading hooks from both {path} and {config}; prefer a single representation for this layer",
    )


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("{", "failed to parse hooks config {path}: Expecting property name"),
        ("", "failed to parse hooks config {path}: Expecting value"),
        ("[]", "failed to parse hooks config {path}: it must be a table"),
        ("[" * 100_000, "failed to parse hooks config {path}: it is nested too deeply"),
        (
            '{"hooks": []}',
            "failed to parse hooks config {path}: `hooks` must be a table",
        ),
        (
            '{"hooks": {"Stop": [], "Stop": []}}',
            "the key 'Stop' is repeated in one object",
        ),
        ('{"Stop": []}', "failed to parse hooks config {path}: `Stop` is unknown"),
        (hooks(command("a"), {"type": "http"}), "must be one of `command`, `mcp_tool`"),
        (hooks({"command": "a"}), "the `type` of a hook"),
        (hooks({"type": "command"}), "has no `command`"),
        (hooks({"type": "mcp_tool", "server": "s"}), "has no `tool`"),
        (
            # Each of them would take a millisecond.
            '{"hooks": {'
            + ", ".join(map('"Stop{}": []'.format, range(200_000)))
            + "}}",
            "failed to parse hooks config {path}: it has 200000 names that are no hook event",
        ),
        (hooks(command("a", timeout=1.5)), "must be an integer of 0 or more"),
        (hooks(command("a", timeout=-1)), "must be an integer of 0 or more"),
        (hooks(command("a", **{"async": "x"})), "must be a boolean"),
        (hooks(command("a"), matcher=3), "must be a string"),
        (hooks(command("  ")), "skipping empty hook command in {path}"),
        (
            hooks(command("a\0b")),
            "skipping hook in {path}: its command has a NUL character",
        ),
        (hooks(command("a\ud800")), "failed to parse hooks config {path}: "),
        (
            hooks({"type": "prompt"}),
            "skipping prompt hook in {path}: prompt hooks are not",
        ),
        (
            hooks({"type": "agent"}),
            "skipping agent hook in {path}: agent hooks are not",
        ),
        (
            hooks({"type": "mcp_tool", "server": "s", "tool": ""}),
            "skipping MCP tool hook in {path}: server and tool must not be empty",
        ),
        (
            hooks({"type": "mcp_tool", "server": "s", "tool": "t"}, event="SessionEnd"),
            "skipping MCP tool hook in {path}: SessionEnd MCP hooks are not supported",
        ),
        (hooks(command("a"), matcher="["), 'invalid matcher "[" in {path}: '),
        (hooks(command("a"), matcher="(" * 50_000), 'invalid matcher "(((('),
    ],
)
def test_a_mistake_is_told_and_its_hook_does_not_run(
    place: Place, text: str, warning: str
):
    path = place.user(text, "hooks.json")
    result = found(place)
    assert result.found == ()
    (told,) = result.warnings
    assert warning.format(path=path) in told


def test_a_mistake_costs_only_its_own_file_or_group(place: Place):
    place.user(toml("kept"))
    groups = [{"hooks": [command("a")], "matcher": "["}, {"hooks": [command("b")]}]
    path = place.user(json.dumps({"hooks": {_EVENT: groups}}), "hooks.json")
    assert commands(place) == ["b", "kept"]
    assert found(place).found[0].key == f"{path}:pre_tool_use:1:0"
    place.user("{", "hooks.json")
    assert commands(place) == ["kept"]


def test_warnings_are_bounded(place: Place):
    group = {"hooks": [command("a")], "matcher": "(" + "x" * 5000}
    place.user(json.dumps({"hooks": {_EVENT: [group] * 60}}), "hooks.json")
    warnings = found(place).warnings
    assert len(warnings) == 50
    assert max(map(len, warnings)) == 1000


def test_a_wrong_type_of_hook_in_config_toml_does_not_stop_the_start(place: Place):
    place.user(hooks(command("kept")), "hooks.json")
    path = place.user('[[hooks.Stop]]\nhooks = [{ type = "http" }]\n')
    assert commands(place) == ["kept"]
    assert found(place).warnings[0].startswith(f"failed to parse hooks config {path}: ")


def test_odd_files_are_read_or_told(place: Place, tmp_path: Path):
    path = place.home / "hooks.json"
    path.write_bytes(
        b"\xef\xbb\xbf" + hooks(command("a")).replace(" ", "\r\n").encode()
    )
    assert commands(place) == ["a"]
    path.write_bytes(b'{"hooks": "\xff"}')
    assert found(place).warnings[0].startswith(f"failed to read hooks config {path}: ")
    path.unlink()
    path.mkdir()
    assert "it is a folder" in found(place).warnings[0]
    path.rmdir()
    os.mkfifo(path)
    assert "it is a named pipe" in found(place).warnings[0]
    path.unlink()
    path.symlink_to(tmp_path / "missing")
    assert "it is a link that leads nowhere" in found(place).warnings[0]
    path.unlink()
    path.symlink_to(write(tmp_path / "elsewhere.json", hooks(command("linked"))))
    assert commands(place) == ["linked"]
    path.unlink()
    path.write_bytes(b" " * (5 << 20))
    assert "it is larger than 4 MB" in found(place).warnings[0]


def test_a_hook_that_is_there_twice_runs_twice(place: Place):
    group = {"hooks": [command("a")]}
    path = place.user(json.dumps({"hooks": {_EVENT: [group, group]}}), "hooks.json")
    assert [hook.key for hook in found(place).found] == [
        f"{path}:pre_tool_use:0:0",
        f"{path}:pre_tool_use:1:0",
    ]


def test_events_of_others_are_told_and_so_are_unknown_fields(place: Place):
    groups = [{"hooks": [{"type": "x"}]}]
    document = {
        "description": "mine",
        "hooks": {
            "Notification": groups,
            "Nope": groups,
            "Stop": [{"hooks": [command("a", x=1)]}],
        },
    }
    path = place.user(json.dumps(document, indent=1), "hooks.json")
    assert commands(place) == ["a"]
    assert found(place).warnings == (
        f"{path}:4: there is no hook event `Notification`, so its hooks do not run.",
        f"{path}:13: there is no hook event `Nope`, so its hooks do not run.",
        f"{path}:28: `hooks.Stop.0.hooks.0.x` has no effect.",
    )


_FLAT = command("a")
_LOST: list[tuple[dict[str, Any], str]] = [
    # A group without hooks: what should refuse would never run.
    (_FLAT, "`hooks.PreToolUse.0` has no list `hooks`, so nothing of it runs; write"),
    ({"matcher": "Bash", "command": "a"}, '; write `{"hooks": […]}` around its hook.'),
    ({"type": "mcp_tool", "server": "s", "tool": "t"}, "around its hook."),
    ({"matcher": "Bash", "hook": [_FLAT]}, "; is `hook` meant to be `hooks`?"),
    ({"matcher": "Bash", "Hooks": [_FLAT]}, "; is `Hooks` meant to be `hooks`?"),
    ({"matcher": "Bash", "handlers": [_FLAT]}, "so nothing of it runs."),
    ({"matcher": "Bash"}, "so nothing of it runs."),
    ({}, "so nothing of it runs."),
    # It would run for every tool.
    ({"matchers": "Bash", "hooks": [_FLAT]}, "; did you mean `matcher`?"),
    ({"Matcher": "Bash", "hooks": [_FLAT]}, "; did you mean `matcher`?"),
    ({"match": "Bash", "hooks": [_FLAT]}, "; did you mean `matcher`?"),
    (
        {"hooks": [command("a", matcher="Bash")]},
        "`hooks.PreToolUse.0.hooks.0.matcher` has no effect, because it is out of place: it belongs to the group",
    ),
    # It would run otherwise.
    ({"hooks": [command("a", timeot=5)]}, "; did you mean `timeout`?"),
    ({"hooks": [command("a", timeout_ms=5)]}, "; did you mean `timeout`?"),
    ({"hooks": [command("a", status_message="x")]}, "; did you mean `statusMessage`?"),
    (
        {"timeout": 5, "hooks": [_FLAT]},
        "`hooks.PreToolUse.0.timeout` has no effect, because it is out of place: it belongs to a hook in the list",
    ),
]


@pytest.mark.parametrize(("group", "told"), _LOST)
def test_a_group_by_which_a_hook_would_be_lost_is_an_error_with_its_place(
    place: Place, group: dict[str, Any], told: str
):
    document = {"hooks": {"Stop": [], _EVENT: [group]}}
    path = place.user(json.dumps(document, indent=1), "hooks.json")
    with pytest.raises(ConfigError) as caught:
        find_hooks(place.load(), place.environment)
    line, _, text = str(caught.value).removeprefix(f"{path}:").partition(": ")
    assert int(line) >= 4
    assert text.startswith("`hooks.PreToolUse.0")
    assert told in text


def test_a_lost_hook_is_an_error_in_every_form_of_our_own_files(place: Place):
    flat = 'type = "command", command = "a"'
    path = place.user(f"\n[[hooks.PreToolUse]]\n{flat.replace(', ', chr(10))}\n")
    lost = "`hooks.PreToolUse.0` has no list `hooks`"
    with pytest.raises(ConfigError, match="^" + re.escape(f"{path}:2: {lost}")):
        find_hooks(place.load(), place.environment)
    path.unlink()
    with pytest.raises(ConfigError, match="^" + re.escape(f"-c: {lost}")):
        find_hooks(
            place.load(overrides=[f"hooks.PreToolUse=[{{{flat}}}]"]), place.environment
        )
    write(place.system / "hooks.json", json.dumps({"hooks": {_EVENT: [_FLAT]}}))
    with pytest.raises(ConfigError, match=re.escape(lost)):
        find_hooks(place.load(), place.environment)


@pytest.mark.parametrize(("group", "told"), _LOST)
def test_settings_that_only_claude_code_has_are_a_warning(
    place: Place, group: dict[str, Any], told: str
):
    document = {"hooks": {_EVENT: [group, {"hooks": [command("kept")]}]}}
    write(place.home.parent / ".claude" / "settings.json", json.dumps(document))
    place.user(_OWN)
    assert commands(place)[-1] == "kept"
    (warning,) = found(place).warnings
    assert told in warning


def test_fields_of_claude_code_and_remarks_are_no_errors(place: Place):
    more = {"once": True, "shell": "bash", "asyncRewake": True, "if": "Bash(git *)"}
    remarks = {"_comment": "x", "$schema": "x", "//": "x", "description": "x"}
    group = {
        "hooks": [command("a", **more, **remarks, commandWindows="x")],
        **remarks,
    }
    path = place.user(json.dumps({"hooks": {_EVENT: [group]}}), "hooks.json")
    assert commands(place) == ["a"]
    assert found(place).warnings == tuple(
        f"{path}:1: `hooks.PreToolUse.0.hooks.0.{name}` has no effect." for name in more
    )


def test_fields_of_handlers_that_do_not_run_are_not_told(place: Place):
    handlers = [{"type": "prompt", "prompt": "x", "timeot": 5}]
    place.user(hooks(*handlers), "hooks.json")
    (warning,) = found(place).warnings
    assert "prompt hooks are not supported" in warning


def test_too_many_unknown_fields_cost_the_file(place: Place):
    unknown = {f"matcher{number}": 1 for number in range(100_000)}
    groups = [{"hooks": [command("a")], **unknown}]
    path = place.user(json.dumps({"hooks": {_EVENT: groups}}), "hooks.json")
    assert found(place) == Hooks(
        warnings=(
            f"failed to parse hooks config {path}: it has more than 100 names that are unknown",
        )
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PreTolUse", "PreToolUse"),
        ("pre_tool_use", "PreToolUse"),
        ("POSTTOOLUSE", "PostToolUse"),
        ("PreTool", "PreToolUse"),
        ("Stopp", "Stop"),
        ("cluade", "claude"),
    ],
)
def test_a_misspelt_event_is_an_error_with_its_place(
    place: Place, name: str, meant: str
):
    text = f"there is no hook event `{name}`, so its hooks do not run; did you mean `{meant}`?"
    path = place.user(
        json.dumps({"hooks": {"Stop": [], name: []}}, indent=1), "hooks.json"
    )
    with pytest.raises(ConfigError, match="^" + re.escape(f"{path}:4: {text}") + "$"):
        find_hooks(place.load(), place.environment)
    path.unlink()
    path = place.user(f"\n{toml('a').replace(_EVENT, name)}")
    with pytest.raises(ConfigError, match="^" + re.escape(f"{path}:2: {text}") + "$"):
        find_hooks(place.load(), place.environment)
    path.unlink()
    with pytest.raises(ConfigError, match="^" + re.escape(f"-c: {text}") + "$"):
        find_hooks(place.load(overrides=[f"hooks.{name}=[]"]), place.environment)


def test_every_misspelt_event_is_named_and_none_where_hooks_are_off(place: Place):
    place.user(json.dumps({"hooks": {"PreTolUse": []}}), "hooks.json")
    place.user(toml("a").replace(_EVENT, "PostTolUse"))
    with pytest.raises(ConfigError, match=r"PreTolUse(?s:.)*PostTolUse"):
        find_hooks(place.load(), place.environment)
    assert (
        find_hooks(place.load(overrides=["features.hooks=false"]), place.environment)
        == Hooks()
    )


def test_an_untrusted_project_cannot_stop_the_start_with_a_misspelt_event(place: Place):
    project_hooks(place, hooks(command("a"), event="PreTolUse"))
    assert found(place) == Hooks()
    place.trusted()
    with pytest.raises(ConfigError, match="PreTolUse"):
        find_hooks(place.load(), place.environment)


@pytest.mark.parametrize("name", ["hooks", "codex_hooks"])
def test_hooks_can_be_switched_off(place: Place, name: str):
    place.user(hooks(command("a")), "hooks.json")
    assert commands(place, overrides=[f"features.{name}=true"]) == ["a"]
    assert commands(place, overrides=[f"features.{name}=false"]) == []
    assert not has_hooks(place.load(overrides=[f"features.{name}=false"]))


def test_hooks_of_a_project_are_used_only_if_it_is_trusted_as_it_is(place: Place):
    path = project_hooks(place, hooks(command("a")))
    place.project(toml("b"))
    assert not has_hooks(place.load())
    assert found(place) == Hooks()
    place.trusted()
    assert commands(place) == ["a", "b"]
    path.write_text(hooks(command("c")), encoding="utf-8")
    assert found(place) == Hooks()
    place.trust()
    assert commands(place) == ["c", "b"]


def test_hooks_of_a_project_count_for_a_session_in_another_folder(
    place: Place, tmp_path: Path
):
    """As a subagent has, in a worktree of its own."""
    project_hooks(place, hooks(command("a")))
    place.project(toml("b"))
    place.trusted()
    before = found(place)
    config = replace(place.load(), cwd=tmp_path, project_root=tmp_path)
    assert find_hooks(config, place.environment) == before


def test_a_linked_worktree_shares_the_trust_in_hooks(place: Place, tmp_path: Path):
    path = project_hooks(place, hooks(command("a")))
    place.trusted()
    trust(place.home, found(place).found)
    git_dir = place.root / ".git" / "worktrees" / "linked"
    linked = tmp_path / "linked"
    write(linked / ".git", f"gitdir: {git_dir}\n")
    write(git_dir / "gitdir", f"{linked / '.git'}\n")
    other = write(linked / ".codex" / "hooks.json", path.read_text("utf-8"))
    config = load_config(cwd=linked, environment=place.environment, system=place.system)
    (hook,) = find_hooks(config, place.environment).found
    assert (hook.source, hook.key) == (other, f"{path}:pre_tool_use:0:0")
    assert hook.state == "trusted"


def test_a_hook_runs_as_it_was_trusted(place: Place):
    place.user("# mine\n[hooks]\n")
    place.user(hooks(command("a"), command("b")), "hooks.json")
    first, second = found(place).found
    assert [first.state, second.state] == ["new", "new"]
    trust(place.home, [first, second])
    text = (place.home / "config.toml").read_text(encoding="utf-8")
    assert text == (
        "# mine\n[hooks]\n"
        f'\n[hooks.state."{first.key}"]\ntrusted_hash = "{first.hash}"\n'
        f'\n[hooks.state."{second.key}"]\ntrusted_hash = "{second.hash}"\n'
    )
    assert [hook.state for hook in found(place).found] == ["trusted", "trusted"]
    place.user(hooks(command("a"), command("changed")), "hooks.json")
    assert [hook.state for hook in found(place).found] == ["trusted", "changed"]
    assert [hook.command for hook in found(place).to_review] == ["changed"]
    trust(place.home, found(place).to_review)
    assert [hook.state for hook in found(place).found] == ["trusted", "trusted"]
    assert "# mine" in (place.home / "config.toml").read_text(encoding="utf-8")


def test_many_hooks_are_trusted_at_once(place: Place):
    kept = '# mine\n[tui]\ntheme = "dark" # nice\n'
    place.user(kept)
    place.user(hooks(*(command(f"a {n}") for n in range(200))), "hooks.json")
    trust(place.home, found(place).found[:100])
    place.user(hooks(*(command(f"b {n}") for n in range(200))), "hooks.json")
    trust(place.home, found(place).found)
    assert {hook.state for hook in found(place).found} == {"trusted"}
    assert (place.home / "config.toml").read_text(encoding="utf-8").startswith(kept)


def test_a_hook_that_is_switched_off_keeps_its_trust(place: Place):
    place.user(hooks(command("a")), "hooks.json")
    trust(place.home, [only(place)])
    before = (place.home / "config.toml").read_text(encoding="utf-8")
    enable(place.home, only(place), enabled=False)
    assert only(place).state == "disabled"
    enable(place.home, only(place), enabled=True)
    assert only(place).state == "trusted"
    assert (place.home / "config.toml").read_text(encoding="utf-8") == before


def test_a_new_hook_can_be_switched_off(place: Place):
    place.user(hooks(command("a")), "hooks.json")
    enable(place.home, only(place), enabled=False)
    assert only(place).state == "disabled"
    enable(place.home, only(place), enabled=True)
    assert only(place).state == "new"


def test_a_project_cannot_trust_its_own_hooks(place: Place):
    path = project_hooks(place, hooks(command("a")))
    place.trusted()
    hook = only(place)
    place.project(
        f'[hooks.state."{path}:pre_tool_use:0:0"]\ntrusted_hash = "{hook.hash}"\n'
    )
    place.trust()
    assert only(place).state == "new"
    trust(place.home, [hook])
    place.project(f'[hooks.state."{path}:pre_tool_use:0:0"]\nenabled = false\n')
    place.trust()
    assert only(place).state == "trusted"


def test_the_command_line_can_trust_and_switch_off(place: Place):
    place.user(hooks(command("a")), "hooks.json")
    hook = only(place)
    state = f'hooks.state={{"{hook.key}"={{%s}}}}'
    trusting = state % f'trusted_hash="{hook.hash}"'
    assert [h.state for h in found(place, overrides=[trusting]).found] == ["trusted"]
    trust(place.home, [hook])
    off = state % "enabled=false"
    assert [h.state for h in found(place, overrides=[off]).found] == ["disabled"]


def test_hooks_of_the_administrator_are_trusted_and_stay_on(place: Place):
    path = write(place.system / "hooks.json", hooks(command("a")))
    place.user(f'[hooks.state."{path}:pre_tool_use:0:0"]\nenabled = false\n')
    assert only(place).state == "trusted"


_OWN = "[hooks]\nclaude = true\n"


def test_hooks_of_claude_code_are_read_if_the_user_asks_for_it(place: Place):
    user = write(
        place.home.parent / ".claude" / "settings.json", hooks(command("user"))
    )
    shared = write(place.root / ".claude" / "settings.json", hooks(command("shared")))
    local = write(
        place.root / ".claude" / "settings.local.json", hooks(command("local"))
    )
    place.trusted()
    assert commands(place) == []
    place.user(_OWN)
    assert commands(place) == ["user"]
    place.trusted(_OWN)
    result = found(place)
    assert [hook.source for hook in result.found] == [user, shared, local]
    assert result.warnings == ()
    assert {hook.state for hook in result.found} == {"new"}
    assert result.found[1].environment == {"CLAUDE_PROJECT_DIR": str(place.root)}
    trust(place.home, result.found)
    shared.write_text(hooks(command("changed")), encoding="utf-8")
    assert [hook.state for hook in found(place).found] == [
        "trusted",
        "changed",
        "trusted",
    ]


def test_a_project_in_the_home_folder_does_not_run_the_hooks_of_the_user_twice(
    place: Place,
):
    user_home = place.home.parent
    write(user_home / ".claude" / "settings.json", hooks(command("user")))
    place.user(f'{_OWN}[projects."{user_home}"]\ntrust_level = "trusted"\n')
    config = load_config(
        cwd=user_home, environment=place.environment, system=place.system
    )
    assert [h.command for h in find_hooks(config, place.environment).found] == ["user"]


def test_settings_of_claude_code_have_more_than_hooks(place: Place):
    document = {
        "model": "opus",
        "permissions": {"allow": ["Bash"]},
        "hooks": {
            "Notification": [{"hooks": [command("n")]}],
            "PreTolUse": [{"hooks": [command("m")]}],
            _EVENT: [
                {
                    "matcher": "Bash|MultiEdit|NotebookEdit|Task",
                    "hooks": [
                        command("a"),
                        {"type": "http", "url": "x"},
                        command("b", **{"if": "Bash(git *)"}),
                        command("c", args=["x"]),
                    ],
                }
            ],
        },
    }
    path = write(place.home.parent / ".claude" / "settings.json", json.dumps(document))
    place.user(_OWN)
    hook = only(place)
    assert (hook.command, hook.matcher) == ("a", "Bash|Edit|Edit|Agent")
    assert found(place).warnings == (
        f"skipping http hook in {path}: http hooks are not supported yet",
        f"skipping hook in {path}: `if` is not supported",
        f"skipping hook in {path}: `args` is not supported",
        f"{path}:1: there is no hook event `Notification`, so its hooks do not run.",
        f"{path}:1: there is no hook event `PreTolUse`, so its hooks do not run; did you mean `PreToolUse`?",
    )
    path.write_text(json.dumps({**document, "disableAllHooks": True}), encoding="utf-8")
    assert found(place) == Hooks()


def test_settings_of_a_project_are_not_read_through_a_link_that_leaves_it(
    place: Place, tmp_path: Path
):
    outside = write(tmp_path / "outside.json", hooks(command("a")))
    (place.root / ".claude").mkdir()
    (place.root / ".claude" / "settings.json").symlink_to(outside)
    place.trusted(_OWN)
    result = found(place)
    assert result.found == ()
    assert "leads out of" in result.warnings[0]


@needs_codex
def test_keys_hashes_and_trust_are_those_of_codex(place: Place):
    arguments: dict[str, Any] = {"b": [1, 2.5, True, "x"], "a": {"é": {}}}
    groups: list[dict[str, Any]] = [
        {
            "matcher": "Bash",
            "hooks": [
                command("a 'b' \"c\" \\ é \u2028 \x7f"),
                command("b", timeout=0, statusMessage="s", additionalContextLimit=7),
                command("c", commandWindows="x", **{"async": True}),
            ],
        },
        {
            "matcher": "",
            "hooks": [
                {"type": "mcp_tool", "server": "s", "tool": "t"},
                {
                    "type": "mcp_tool",
                    "server": "s",
                    "tool": "t",
                    "timeout": 3,
                    "input": arguments,
                },
                {"type": "prompt"},
                command("d"),
            ],
        },
        {"matcher": "*", "hooks": [command("e")]},
    ]
    others = {
        event: [{"matcher": "x", "hooks": [command("a")]}]
        for event in (
            *(
                "SessionStart",
                "SessionEnd",
                "UserPromptSubmit",
                "PostToolUse",
                "Stop",
                "Interrupt",
            ),
            *(
                "PermissionRequest",
                "PreCompact",
                "PostCompact",
                "SubagentStart",
                "SubagentStop",
            ),
        )
    }
    place.user(json.dumps({"hooks": {_EVENT: groups, **others}}), "hooks.json")
    real = place.home.rename(place.home.with_name("real"))
    place.home.symlink_to(real)
    project_hooks(place, hooks(command("project")))
    place.trusted(
        toml("user")
        + '[[hooks.Stop]]\nhooks = [{ type = "mcp_tool", server = "s", tool = "t",'
        " input = { a = 1, b = 2.5 } }]\n"
    )
    trust(place.home, found(place).found[:3])
    enable(place.home, found(place).found[4], enabled=False)

    ours = {
        hook.key: (hook.hash, hook.timeout_s, hook.state, hook.matcher)
        for hook in found(place).found
    }
    states = {"untrusted": "new", "modified": "changed", "trusted": "trusted"}
    theirs = {
        hook["key"]: (
            hook["currentHash"],
            hook["timeoutSec"],
            states[hook["trustStatus"]] if hook["enabled"] else "disabled",
            None if hook["matcher"] in {"", "*"} else hook["matcher"],
        )
        for hook in hooks_of_codex(place.environment, place.cwd)
    }
    assert len(ours) == 21
    assert ours == theirs
