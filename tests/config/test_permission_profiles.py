"""Permission profiles: what a file says, and the mistakes in it. The texts are those of Codex 0.169."""

from pathlib import Path

import pytest

from codex_py.errors import ConfigError
from codex_py.filesystem.denials import denials_of
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.file_rules import FileRules
from tests.config.conftest import Place

_BASE = """
[permissions.base]
extends = ":workspace"
[permissions.base.filesystem]
"/opt/shared" = "write"
"~/.ssh" = "deny"
":tmpdir" = "read"
glob_scan_max_depth = 4
[permissions.base.filesystem.":workspace_roots"]
"private" = "deny"
"sec" = "none"
"sec/open/" = "read"
"**/*.{env,key}" = "deny"
"""
_CHILD = """
default_permissions = "p"
[permissions.p]
extends = "base"
description = "for tests"
workspace_roots = { "/other" = true, "/not" = false }
filesystem.":workspace_roots" = { "private" = "read", ".git" = "write" }
network.enabled = true
"""


def test_a_profile_inherits_and_replaces_entries_of_the_same_name(place: Place):
    place.user(_CHILD + _BASE)
    config = place.load()
    policy = config.sandbox_policy()
    roots = (place.cwd, Path("/other"))
    assert policy.mode == "workspace-write"
    assert (policy.profile, policy.network_access) == ("p", True)
    assert set(policy.writable_roots) == {
        *roots,
        Path("/opt/shared"),
        *(root / ".git" for root in roots),
    }
    assert (policy.exclude_tmpdir_env_var, policy.exclude_slash_tmp) == (True, False)
    rules = dict(policy.files.entries)
    assert rules[place.home.parent / ".ssh"] == "deny"
    for root in roots:
        assert (rules[root / "private"], rules[root / "sec"]) == ("read", "deny")
        assert rules[root / "sec/open"] == "read"
        assert {(root, "**/*.env"), (root, "**/*.key")} <= set(policy.files.globs)
    assert policy.files.scan_depth == 4


def test_an_added_folder_is_a_workspace_root(place: Place):
    place.user(_CHILD + _BASE)
    policy = place.load().sandbox_policy([Path("/added")])
    assert Path("/added") in policy.writable_roots
    assert dict(policy.files.entries)[Path("/added/sec")] == "deny"


def test_a_profile_that_writes_nothing_is_read_only(place: Place):
    place.user(
        'default_permissions = "p"\n[permissions.p]\nextends = ":read-only"\n'
        'filesystem."/x" = "deny"\n'
    )
    assert place.load().sandbox_policy() == SandboxPolicy(
        files=FileRules(((Path("/x"), "deny"),)), profile="p"
    )


@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "danger-full-access"])
def test_a_stronger_sandbox_mode_never_drops_what_is_denied(place: Place, mode: str):
    place.user(_CHILD + _BASE)
    policy = place.load(flags={"sandbox_mode": mode}).sandbox_policy()
    assert (policy.mode, policy.profile) == (mode, "")
    assert place.cwd / "sec" in policy.files.denied


def test_the_choice_of_a_built_in_profile_drops_the_other_one(place: Place):
    place.user(_CHILD + _BASE)
    config = place.load(flags={"default_permissions": ":workspace"})
    assert not config.sandbox_policy().files.denies


@pytest.mark.parametrize(
    "text",
    [
        'default_permissions = ":workspace"',
        'default_permissions = "q"\npermissions.q = {}',
        'permissions.base.filesystem.":workspace_roots" = { "sec" = "write", "sec/x" = "read" }',
    ],
)
def test_a_trusted_project_opens_nothing_that_its_user_denies(place: Place, text: str):
    place.trusted(_CHILD + _BASE)
    place.project(text)
    place.trust()
    rules = place.load().sandbox_policy().files
    assert place.cwd / "sec" in rules.denied
    assert (place.cwd, "**/*.env") in rules.globs
    assert place.cwd / "sec/x" not in dict(rules.entries)


def test_a_trusted_project_may_choose_a_profile_of_its_user(place: Place):
    place.trusted(_BASE)
    place.project('default_permissions = "base"')
    place.trust()
    entries = dict(place.load().sandbox_policy().files.entries)
    assert (entries[place.cwd / "sec"], entries[place.cwd / "sec/open"]) == (
        "deny",
        "read",
    )


def test_protection_denies_in_every_mode_and_adds_up(place: Place):
    place.user('protection = { secrets = "deny", deny = ["a", "/b/*.c"] }')
    policy = place.load(flags={"protection": {"deny": ["d/**"]}}).sandbox_policy()
    assert {place.cwd / "a", place.home.parent / ".ssh"} == set(policy.files.denied)
    globs = {(Path("/b"), "*.c"), (place.cwd, "d/**"), (place.cwd, "**/.env*")}
    assert globs <= set(policy.files.globs)


@pytest.mark.parametrize(
    ("pattern", "denied", "read"),
    [
        ("*.key", ["a.key", "s/a.key", "s/t/a.key", "s/.key"], ["a.keys", "key"]),
        (".env", [".env", "s/.env", "s/t/.env", ".env/x"], [".env2", "s/x.env"]),
        (
            "private",
            ["private", "private/x", "s/private", "s/t/private/x/y"],
            ["privates"],
        ),
        ("private/", ["private/x", "s/private/x"], ["s/privates/x"]),
        ("*.{key,pem}", ["a.key", "s/a.pem"], ["a.crt"]),
        ("{.env,s/t}", [".env", "x/.env", "s/t", "s/t/x"], ["x/s/t"]),
        ("a[0-9]?", ["a12", "s/a12"], ["a1", "b12"]),
        ("s/*.key", ["s/a.key"], ["a.key", "s/t/a.key", "x/s/a.key"]),
        ("s/private", ["s/private", "s/private/x"], ["private", "x/s/private"]),
        ("**/x", ["x", "s/x"], ["y"]),
        ("~/.ssh", [], ["s/.ssh", ".ssh"]),
    ],
)
def test_a_pattern_without_a_slash_means_a_name_at_any_depth(
    place: Place, pattern: str, denied: list[str], read: list[str]
):
    place.user(f'protection.deny = ["{pattern}"]')
    by_option = place.load(flags={"protection": {"deny": [pattern]}}).files
    files = place.load().files
    assert files == by_option
    for name in denied:
        assert denials_of(files).refuses(place.cwd / name), name
    for name in read:
        assert not denials_of(files).refuses(place.cwd / name), name


def test_a_name_in_a_profile_is_a_path_as_in_codex(place: Place):
    place.user(_CHILD + _BASE.replace('"private" = "deny"', '"deep" = "deny"'))
    refuses = denials_of(place.load().files).refuses
    assert refuses(place.cwd / "deep/x")
    assert not refuses(place.cwd / "s/deep/x")


@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        (
            "\n[permissions.p]\n",
            2,
            "config defines `[permissions]` profiles but does not set `default_permissions`",
        ),
        (
            'default_permissions = "nope"',
            1,
            "default_permissions refers to undefined profile `nope`",
        ),
        (
            'default_permissions = ":no"',
            1,
            "default_permissions refers to undefined profile `:no`",
        ),
        (
            'default_permissions = "p"\npermissions.p.extends = "nope"',
            2,
            "permissions profile `p` extends undefined profile `nope`",
        ),
        (
            'default_permissions = "p"\npermissions.p.extends = "q"\npermissions.q.extends = "p"',
            3,
            "permissions profile inheritance cycle detected: p -> q -> p",
        ),
        (
            'default_permissions = "p"\npermissions.p.extends = ":danger-full-access"',
            2,
            "permissions profile `p` cannot extend ':danger-full-access'",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem.":workspace_roots"."*.txt" = "read"',
            2,
            "filesystem glob path `*.txt` only supports `deny` access",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem."x" = "deny"',
            2,
            "must be absolute",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem."$HOME/x" = "deny"',
            2,
            "filesystem path `$HOME/x` must be absolute, use `~/...`, or start with `:`",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem.":workspace_roots"."../o" = "deny"',
            2,
            "filesystem subpath `../o` must be a descendant path without `.` or `..` components",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem."/a" = "maybe"',
            2,
            "must be one of",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem.":x" = "deny"',
            2,
            "not recognized",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem.":root" = "deny"',
            2,
            "cannot be denied",
        ),
        (
            'default_permissions = "p"\npermissions.p.files."/a" = "deny"',
            2,
            "unknown table `files`",
        ),
        (
            'default_permissions = "p"\npermissions.p.filesystem.glob_scan_max_depth = 0',
            2,
            "must be an integer of more than 0",
        ),
        ('protection.deny = ["../x"]', 1, "must be a descendant path"),
    ],
)
def test_a_mistake_stops_the_start_with_its_place(
    place: Place, text: str, line: int, fault: str
):
    path = place.user(text)
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert f"{path}:{line}: " in str(raised.value)
    assert fault in str(raised.value)
    assert raised.value.exit_code == 78
