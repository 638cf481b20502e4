"""The list of domains, with the keys of Codex 0.169."""

from pathlib import Path

import pytest

from codex_py.config.config import load_config
from codex_py.errors import ConfigError
from codex_py.protocol.approval import SandboxPolicy
from tests.config.conftest import Place

_PROFILE = """
default_permissions = "p"
[permissions.p]
extends = ":workspace"
[permissions.p.network]
enabled = true
[permissions.p.network.domains]
"allowed.test" = "allow"
"denied.allowed.test" = "deny"
"""
_OLD = """
sandbox_mode = "workspace-write"
[sandbox_workspace_write]
network_access = true
[features.network_proxy]
enabled = true
domains = { "allowed.test" = "allow", "denied.allowed.test" = "deny" }
"""


def _reached(policy: SandboxPolicy) -> tuple[str, ...] | None:
    """The allowed patterns; None for every host."""
    if not policy.network_access:
        return ()
    return None if policy.domains is None else policy.domains.allow


@pytest.mark.parametrize(
    "text", [_OLD, _PROFILE, "features.network_proxy = true\n" + _PROFILE]
)
def test_a_list_holds_in_the_old_form_and_in_a_profile_with_and_without_the_feature(
    place: Place, text: str
):
    place.user(text)
    config = place.load()
    config.require_enforced()
    policy = config.sandbox_policy()
    assert _reached(policy) == ("allowed.test",)
    assert policy.domains is not None
    assert policy.domains.deny == ("denied.allowed.test",)


def test_domains_of_the_feature_are_added_to_those_of_a_profile(place: Place):
    place.user('features.network_proxy.domains = { "b.test" = "allow" }\n' + _PROFILE)
    assert _reached(place.load().sandbox_policy()) == ("allowed.test", "b.test")


def test_an_empty_list_lets_nothing_through(place: Place):
    place.user(
        'sandbox_mode = "workspace-write"\nsandbox_workspace_write.network_access = true\n'
        "features.network_proxy = true"
    )
    assert _reached(place.load().sandbox_policy()) == ()


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        (
            'sandbox_mode = "read-only"\n'
            + _OLD.partition("[")[1]
            + _OLD.partition("[")[2],
            (),
        ),
        (_OLD.replace("network_access = true", "network_access = false"), ()),
        (_OLD.replace("workspace-write", "danger-full-access"), None),
        (_OLD.replace("enabled = true", "enabled = false"), None),
    ],
)
def test_without_a_network_or_a_sandbox_there_is_no_list(
    place: Place, text: str, reached: tuple[str, ...] | None
):
    place.user(text)
    assert _reached(place.load().sandbox_policy()) == reached


@pytest.mark.parametrize("mode", ["read-only", "workspace-write"])
def test_the_option_opens_its_hosts_and_no_others(place: Place, mode: str):
    flags = {
        "sandbox_mode": mode,
        "protection": {"allow_domains": ["a.test", "*.b.test"]},
    }
    assert _reached(place.load(flags=flags).sandbox_policy()) == ("a.test", "*.b.test")
    place.user(_OLD.replace("network_access = true", "network_access = false"))
    assert _reached(place.load(flags=flags).sandbox_policy()) == ("a.test", "*.b.test")


@pytest.mark.parametrize(
    ("line", "number", "text"),
    [
        ('"http://allowed.test" = "allow"', 8, "unsupported domain pattern syntax"),
        ('"*." = "allow"', 8, "domain pattern is empty"),
        ('"a.test" = "maybe"', 8, "must be one of `allow`, `deny`"),
    ],
)
def test_a_mistake_stops_the_start_with_its_place(
    place: Place, line: str, number: int, text: str
):
    path = place.user(_PROFILE.replace('"allowed.test" = "allow"', line))
    with pytest.raises(ConfigError, match=text) as raised:
        place.load()
    assert f"{path}:{number}" in str(raised.value)
    assert raised.value.exit_code == 78


_OPEN = """[permissions.p.network]
enabled = true
allow_local_binding = true
domains = { "*" = "allow", "denied.allowed.test" = "allow", "b.test" = "deny" }
"""
_CHOICE = 'default_permissions = "p"\npermissions.p.extends = ":workspace"\n'


@pytest.mark.parametrize("user", [_OLD, _PROFILE])
@pytest.mark.parametrize(
    "project",
    [
        _OPEN.replace("permissions.p.network", "features.network_proxy"),
        _CHOICE + _OPEN,
        _CHOICE.replace('"p"', '"q"').replace(".p.", ".q."),
    ],
)
def test_a_trusted_project_opens_no_host_in_the_list_of_its_user(
    place: Place, user: str, project: str
):
    place.trusted(user)
    place.project(project)
    place.trust()
    policy = place.load().sandbox_policy()
    assert policy.domains is not None
    assert _reached(policy) in {("allowed.test",), ()}
    assert "denied.allowed.test" in policy.domains.deny
    assert not policy.domains.allows_local


def _required(tmp_path: Path, place: Place, text: str, **flags: str) -> SandboxPolicy:
    (tmp_path / "etc").mkdir(exist_ok=True)
    (tmp_path / "etc/requirements.toml").write_text(text, encoding="utf-8")
    config = load_config(
        cwd=place.cwd,
        environment=place.environment,
        flags=flags,
        system=tmp_path / "etc",
    )
    return config.sandbox_policy()


_REQUIRED = """
[experimental_network]
enabled = true
[experimental_network.domains]
"managed.test" = "allow"
"b.test" = "deny"
"""


def test_an_administrators_list_holds_whatever_the_mode(tmp_path: Path, place: Place):
    for mode in ("workspace-write", "danger-full-access"):
        policy = _required(tmp_path, place, _REQUIRED, sandbox_mode=mode)
        assert _reached(policy) == ("managed.test",)
        assert policy.domains is not None
        assert policy.domains.is_required
    policy = _required(tmp_path, place, _REQUIRED, sandbox_mode="read-only")
    assert _reached(policy) == ()
    # Outside of the sandbox it still holds.
    assert policy.domains is not None
    assert policy.domains.is_required


def test_the_users_domains_are_added_unless_only_managed_ones_count(
    tmp_path: Path, place: Place
):
    place.user(_OLD)
    policy = _required(tmp_path, place, _REQUIRED)
    assert _reached(policy) == ("managed.test", "allowed.test")
    assert policy.domains is not None
    assert policy.domains.deny == ("b.test", "denied.allowed.test")
    only = _REQUIRED.replace("enabled = true", "managed_allowed_domains_only = true")
    policy = _required(tmp_path, place, only)
    assert _reached(policy) == ("managed.test",)
    assert policy.domains is not None
    assert policy.domains.is_closed
    assert "denied.allowed.test" in policy.domains.deny
