"""What an administrator requires, against each way around it. Codex 0.169 has the same keys and fall-backs."""

import os
import pwd
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.settings import configured_choices
from codex_py.config.config import Config
from codex_py.config.hook_files import hook_files
from codex_py.config.hook_places import has_hooks
from codex_py.config.hooks import find_hooks
from codex_py.errors import ConfigError
from codex_py.extensions.approval_review.table import AutoReview
from codex_py.protocol.approval import ApprovalPolicy, SandboxPolicy
from tests.config.conftest import Place
from tests.support.packages import install_package
from tests.support.plugins import installed

READ_ONLY = 'allowed_sandbox_modes = ["read-only"]\n'
NO_FULL = 'allowed_sandbox_modes = ["read-only", "workspace-write"]\n'
ASKS = 'allowed_approval_policies = ["on-request", "untrusted"]\n'
MANAGED = """default_permissions = "managed"
[allowed_permission_profiles]
managed = true
[permissions.managed]
extends = ":workspace"
filesystem = {"/srv/secret" = "deny"}
"""


def require(place: Place, text: str, name: str = "requirements.toml") -> Path:
    path = place.system / name
    path.write_text(text, encoding="utf-8")
    return path


def given(config: Config) -> tuple[str, str]:
    choices = config.requirements.held_choices(configured_choices(config, ()))
    return choices.sandbox_policy.mode, str(choices.approval_policy)


@pytest.mark.parametrize(
    ("text", "where", "mistake"),
    [
        ("nonsense = 1", ":1", "`nonsense` is unknown"),
        ("\nallowed_sandbox_modes = 3", ":2", "must be an array"),
        (
            'allowed_sandbox_modes = ["workspace-write"]',
            ":1",
            "must contain `read-only`",
        ),
        ("allowed_approval_policies = []", ":1", "names no policy"),
        ("[mcp_servers.a]\nidentit = {}", ":2", "is unknown"),
        ("[mcp_servers.a]\nidentity = {}", ":1", "needs an `identity`"),
        ("allowed_approvals_reviewers = []", ":1", "names no value"),
        ('enforce_residency = "eu"', ":1", "must be"),
        ('[permissions.filesystem]\ndeny_read = ["./x"]', ":2", "must be absolute"),
        (
            '[permissions.filesystem]\ndeny_read = ["/**/x"]',
            ":2",
            "cannot be safely expanded",
        ),
        (
            '[experimental_network.domains]\n"a b" = "allow"',
            ":2",
            "unsupported domain pattern",
        ),
        ("[experimental_network]\nmode = 'full'", ":2", "is unknown"),
        ("default_permissions = 'p'", ":1", "needs `allowed_permission_profiles`"),
        ("[allowed_permission_profiles]\np = true", ":1", "undefined profile `p`"),
        (
            '[[rules.prefix_rules]]\npattern = [{token = "a"}]\ndecision = "allow"',
            ":3",
            "must be",
        ),
        ("[[rules.prefix_rules]]\npattern = []", ":1", "needs a `pattern`"),
        ("broken", ":1", ""),
    ],
)
def test_a_mistake_stops_the_start_with_its_place(
    place: Place, text: str, where: str, mistake: str
) -> None:
    path = require(place, text)
    with pytest.raises(ConfigError) as raised:
        place.load(flags={"allow_unenforced": ["permissions.filesystem"]})
    assert f"{path}{where}" in str(raised.value)
    assert mistake in str(raised.value)
    assert raised.value.exit_code == 78


def test_unreadable_requirements_stop_the_start(place: Place) -> None:
    path = place.system / "requirements.toml"
    path.symlink_to("nowhere")
    with pytest.raises(ConfigError, match="cannot be read"):
        place.load()
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        place.load()
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        place.load()


def test_an_empty_file_requires_nothing(place: Place) -> None:
    require(place, "")
    config = place.load(
        flags={"sandbox_mode": "danger-full-access", "approval_policy": "never"}
    )
    assert given(config) == ("danger-full-access", "never")
    assert config.warnings == ()


@pytest.mark.parametrize("way", ["user", "-c", "-s", "profile"])
def test_a_forbidden_mode_falls_back_by_every_way(place: Place, way: str) -> None:
    path = require(place, READ_ONLY)
    asked = 'sandbox_mode = "workspace-write"'
    match way:
        case "user":
            place.user(asked)
            config = place.load()
        case "-c":
            config = place.load(overrides=[asked.replace(" ", "")])
        case "-s":
            config = place.load(flags={"sandbox_mode": "workspace-write"})
        case _:
            config = place.load(flags={"default_permissions": ":workspace"})
    assert given(config)[0] == "read-only"
    (warning,) = config.warnings
    assert "falling back to required value `read-only`" in warning
    assert f"(set by {path})" in warning


def test_a_trusted_folder_gives_no_more_and_nothing_is_told(place: Place) -> None:
    require(place, READ_ONLY)
    place.trusted()
    config = place.load()
    assert (given(config)[0], config.warnings) == ("read-only", ())


@pytest.mark.parametrize(
    "flags",
    [
        {"sandbox_mode": "danger-full-access"},
        {"default_permissions": ":danger-full-access"},
    ],
)
@pytest.mark.parametrize("text", [READ_ONLY, NO_FULL, ASKS])
def test_full_access_without_questions_stops_the_start(
    place: Place, text: str, flags: dict[str, str]
) -> None:
    require(place, text)
    with pytest.raises(ConfigError, match="requirements do not allow"):
        place.load(flags={**flags, "approval_policy": "never"})


@pytest.mark.parametrize("text", [READ_ONLY, NO_FULL])
def test_nothing_given_to_a_session_later_goes_further(place: Place, text: str) -> None:
    require(place, text)
    place.trusted()
    config = place.load()
    # A menu, a role, a client of a server, and a caller of the library.
    wider = replace(
        config, sandbox_mode="danger-full-access", approval_policy=ApprovalPolicy.NEVER
    )
    assert given(wider)[0] == "read-only"
    policy = wider.requirements.held(
        SandboxPolicy("danger-full-access", network_access=True)
    )
    assert (policy.mode, policy.network_access, policy.is_final) == (
        "read-only",
        False,
        True,
    )
    assert config.sandbox_policy().is_final


def test_a_forbidden_approval_policy_falls_back_also_later(place: Place) -> None:
    require(place, ASKS)
    config = place.load(flags={"approval_policy": "never"})
    assert given(config) == ("read-only", "on-request")
    assert "falling back to required value `on-request`" in config.warnings[0]
    later = replace(
        config, sandbox_mode="danger-full-access", approval_policy=ApprovalPolicy.NEVER
    )
    assert given(later) == ("read-only", "on-request")


def test_the_managed_configuration_is_above_overrides_and_below_options(
    place: Place,
) -> None:
    require(place, 'model = "a"\nsandbox_mode = "read-only"', "managed_config.toml")
    assert (
        place.load(overrides=['model="b"', 'sandbox_mode="workspace-write"']).model
        == "a"
    )
    assert place.load(flags={"model": "c"}).model == "c"
    config = place.load(flags={"sandbox_mode": "workspace-write"})
    assert given(config)[0] == "read-only"
    assert f"(set by {place.system / 'managed_config.toml'})" in config.warnings[0]


def test_a_stop_names_the_managed_configuration_if_that_forbids_it(
    place: Place,
) -> None:
    full = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
    for text in ('sandbox_mode = "read-only"', 'approval_policy = "untrusted"'):
        path = require(place, text, "managed_config.toml")
        with pytest.raises(ConfigError, match=re.escape(f"(set by {path})")):
            place.load(flags=full)


def test_an_unknown_key_of_the_managed_configuration_stops_the_start(
    place: Place,
) -> None:
    path = require(place, '\nsandbox_mod = "read-only"', "managed_config.toml")
    with pytest.raises(
        ConfigError, match=re.escape(f"{path}:2: `sandbox_mod` is unknown")
    ):
        place.load()


def test_requirements_are_above_the_managed_configuration(place: Place) -> None:
    require(place, NO_FULL)
    require(place, 'sandbox_mode = "danger-full-access"', "managed_config.toml")
    config = place.load()
    assert given(config)[0] == "read-only"
    assert f"(set by {place.system / 'requirements.toml'})" in config.warnings[0]


def test_the_web_search_falls_back(place: Place) -> None:
    require(place, 'allowed_web_search_modes = ["disabled"]')
    assert place.load().web_search == "disabled"
    assert place.load(overrides=['web_search="live"']).web_search == "disabled"


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"sandbox_mode": "danger-full-access", "approval_policy": "never"},
        {"default_permissions": ":danger-full-access"},
        {
            "default_permissions": "own",
            "permissions": {"own": {"extends": ":workspace"}},
        },
        {
            "default_permissions": "managed",
            "permissions": {"managed": {"filesystem": {"/srv/secret": "write"}}},
        },
    ],
)
def test_only_a_listed_profile_holds_and_its_name_cannot_be_taken(
    place: Place, flags: dict[str, Any]
) -> None:
    require(place, MANAGED)
    config = place.load(flags=flags)
    policy = config.sandbox_policy()
    assert (policy.profile, policy.mode) == ("managed", "workspace-write")
    assert dict(policy.files.entries)[Path("/srv/secret")] == "deny"
    assert policy.is_final


def test_a_policy_of_a_caller_is_held_to_the_listed_profile(place: Place) -> None:
    require(place, MANAGED)
    config = place.load()
    assert config.requirements.held(config.sandbox_policy()) == config.sandbox_policy()
    mine = SandboxPolicy("workspace-write", (Path("/"),), network_access=True)
    for policy in (mine, SandboxPolicy("danger-full-access"), SandboxPolicy()):
        held = config.requirements.held(policy)
        assert (held.mode, held.writable_roots, held.network_access) == (
            "read-only",
            (),
            False,
        )
        assert dict(held.files.entries)[Path("/srv/secret")] == "deny"
        assert held.is_final
    require(
        place, MANAGED.replace("managed = true", 'managed = true\n":workspace" = true')
    )
    assert place.load().requirements.held(mine).mode == "workspace-write"


DENIES = (
    '[permissions.filesystem]\ndeny_read = ["/srv/secret", "~/.ssh", "/srv/*.pem"]\n'
)
OPENS = {
    "default_permissions": "p",
    "permissions": {
        "p": {
            "extends": ":workspace",
            "filesystem": {"/srv/secret/open": "write", "/srv/secret": "read"},
        }
    },
}


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"sandbox_mode": "workspace-write"},
        OPENS,
        {"sandbox_mode": "danger-full-access"},
    ],
)
def test_denied_files_are_denied_in_every_mode_and_profile(
    place: Place, flags: dict[str, Any]
) -> None:
    require(place, DENIES)
    config = place.load(flags={**flags, "allow_unenforced": ["permissions.filesystem"]})
    for policy in (
        config.sandbox_policy(),
        config.requirements.held(SandboxPolicy("workspace-write", (Path("/srv"),))),
    ):
        homes = {place.home.parent / ".ssh", OWN_HOME / ".ssh"}
        assert set(policy.files.denied) == {Path("/srv/secret"), *homes}
        assert Path("/srv/secret/open") not in dict(policy.files.entries)
        assert policy.files.globs == ((Path("/srv"), "*.pem"),)
        assert not policy.files.may_be_unenforced
        assert policy.mode != "danger-full-access"


OWN_HOME = Path(pwd.getpwuid(os.getuid()).pw_dir)
"""Whatever `$HOME` says, which the user chooses."""


def test_another_home_does_not_open_what_is_denied_below_the_own_one(
    place: Place,
) -> None:
    folders = {OWN_HOME / ".ssh", place.home.parent / ".ssh"}
    require(place, '[permissions.filesystem]\ndeny_read = ["~/.ssh", "~/*.pem"]')
    config = place.load(flags={"sandbox_mode": "workspace-write"})
    assert folders <= set(config.sandbox_policy().files.denied)
    assert (OWN_HOME, "*.pem") in config.sandbox_policy().files.globs
    require(place, MANAGED.replace("/srv/secret", "~/.ssh"))
    files = place.load().sandbox_policy().files
    assert folders <= set(files.denied)


def test_the_folder_of_managed_hooks_is_taken(place: Place) -> None:
    keys = 'managed_dir = "/enterprise/hooks"\nwindows_managed_dir = "C:\\\\hooks"\n'
    require(place, f"[hooks]\n{keys}{HOOK}")
    config = place.load()
    assert has_hooks(config)
    hooks = find_hooks(config, place.environment)
    assert (len(hooks.found), hooks.warnings) == (1, ())


def test_the_reviewer_falls_back_and_has_the_policy_of_the_administrator(
    place: Place,
) -> None:
    require(
        place,
        'allowed_approvals_reviewers = ["user"]\nguardian_policy_config = "Be strict."',
    )
    place.user('[auto_review]\npolicy = "Allow all."')
    config = place.load(flags={"approvals_reviewer": "auto_review"})
    assert config.settings.approvals_reviewer == "user"
    assert "falling back to required value `user`" in config.warnings[0]
    assert config.settings.claimed["auto_review"] == AutoReview(
        {"policy": "Be strict."}
    )
    require(place, 'allowed_approvals_reviewers = ["auto_review"]')
    config = place.load(overrides=['approvals_reviewer="guardian_subagent"'])
    assert config.warnings == ()
    assert config.settings.approvals_reviewer == "guardian_subagent"
    assert place.load().settings.approvals_reviewer == "auto_review"


def test_plugins_can_be_pinned_off(place: Place) -> None:
    installed(place.home, {".mcp.json": {"mcpServers": {"docs": {"command": "docs"}}}})
    assert "docs" in place.load().mcp_servers
    require(place, "[features]\nplugins = false")
    config = place.load(overrides=["features.plugins=true"])
    assert (config.plugins, dict(config.mcp_servers)) == ((), {})


def test_features_are_pinned_and_an_unknown_one_is_told(place: Place) -> None:
    path = require(
        place, "[features]\nhooks = true\nmulti_agent = false\nnonesuch = true"
    )
    config = place.load(
        overrides=[
            "features.hooks=false",
            "features.codex_hooks=false",
            "features.multi_agent=true",
        ]
    )
    assert config.features.hooks is config.features.codex_hooks is True
    assert config.features.multi_agent is False
    assert (
        f"Ignoring unknown `features` requirement `nonesuch` from {path}"
        in config.warnings
    )


def test_only_servers_of_the_same_name_and_identity_start(place: Place) -> None:
    require(
        place,
        '[mcp_servers.a.identity]\ncommand = "tool"\n[mcp_servers.b.identity]\nurl = "https://b/"',
    )
    place.user(
        '[mcp_servers.a]\ncommand = "tool"\n[mcp_servers.b]\nurl = "https://evil/"\n'
        '[mcp_servers.c]\ncommand = "tool"'
    )
    config = place.load()
    assert [name for name, server in config.mcp_servers.items() if server.enabled] == [
        "a"
    ]
    assert sum("is disabled by requirements" in text for text in config.warnings) == 2
    assert "from requirements config" in place.explain("mcp_servers.c.enabled")
    require(place, "mcp_servers = {}")
    assert not any(server.enabled for server in place.load().mcp_servers.values())


HOOK = '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "true"\n'


def test_managed_hooks_run_whatever_the_user_says_and_may_be_the_only_ones(
    place: Place,
) -> None:
    path = require(place, f"allow_managed_hooks_only = true\n{HOOK}")
    place.user(HOOK)
    for overrides in ([], ["features.hooks=false"]):
        config = place.load(overrides=overrides)
        files = [
            file
            for file in hook_files(config, place.environment)
            if file.layer is not None
        ]
        assert [file.path for file in files] == [path]
        assert files[0].is_managed
        assert has_hooks(config)


def test_explain_names_the_layer_that_decided(place: Place) -> None:
    path = require(place, READ_ONLY)
    config = place.load(flags={"sandbox_mode": "workspace-write"})
    assert config.layers.layers[0].name == "requirements"
    assert config.layers.where(("sandbox_mode",)) == str(path)


def test_explain_shows_the_keys_of_the_requirements_themselves(place: Place) -> None:
    path = require(
        place, f"{READ_ONLY}[permissions.filesystem]\ndeny_read = ['/srv/x']"
    )
    assert place.explain("allowed_sandbox_modes") == (
        f'allowed_sandbox_modes = ["read-only"]\n  from requirements config {path}:1'
    )
    assert f"{path}:3" in place.explain("permissions.filesystem.deny_read")


def test_a_reviewer_of_a_package_must_be_named(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    points = {"codex_py.reviewers": {"scratch": "codex_py_scratch:reviewer"}}
    install_package(packages, "codex_py_scratch", "", points)
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    asked = {"approvals_reviewer": "scratch"}
    assert place.load(flags=asked).settings.approvals_reviewer == "scratch"
    require(place, 'allowed_approvals_reviewers = ["auto_review"]')
    config = place.load(flags=asked)
    assert config.settings.approvals_reviewer == "auto_review"
    assert "approvals_reviewer" in config.warnings[0]
    require(place, 'allowed_approvals_reviewers = ["scratch"]')
    assert place.load(flags=asked).warnings == ()
    assert place.load().settings.approvals_reviewer == "scratch"
