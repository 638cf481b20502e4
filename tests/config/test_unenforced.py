"""Settings that protect: each stops the start until it is accepted, or is not asked for."""

from pathlib import Path

import pytest

from codex_py.config.config import Config
from codex_py.errors import ConfigError
from tests.config.conftest import Place

_LOCKED = """
default_permissions = "locked"
[permissions.base.filesystem]
"/usr" = "read"
[permissions.locked]
extends = "base"
"""


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        (_LOCKED, "permissions.filesystem", 5),
        ("features.credential_masking = true", "features.credential_masking", 1),
        (
            "shell_environment_policy.experimental_use_profile = true",
            "shell_environment_policy.experimental_use_profile",
            1,
        ),
    ],
)
def test_a_protection_that_is_not_enforced_is_told_with_its_place_and_can_be_accepted(
    place: Place, text: str, name: str, line: int
):
    path = place.user(text)
    (sentence,) = place.load().unenforced
    assert sentence.startswith(f"{path}:{line}: ")
    assert sentence.endswith(f"`--allow-unenforced {name}`.")
    with pytest.raises(ConfigError, match="allow-unenforced") as raised:
        place.load().require_enforced()
    assert raised.value.exit_code == 78
    place.load(flags={"allow_unenforced": [name]}).require_enforced()
    place.load(overrides=[f'allow_unenforced=["{name}"]']).require_enforced()
    place.user(f'allow_unenforced = ["{name}"]\n{text}')
    place.load().require_enforced()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[hooks.PreToolUse]]\nhooks = [{type = 'command', command = 'x'}]",
        'sandbox_mode = "read-only"\npermissions.x.filesystem."/a" = "deny"',
        'default_permissions = ":workspace"\npermissions.x.filesystem."/a" = "deny"',
        'default_permissions = "x"\npermissions.x.filesystem.":root" = "read"',
        'default_permissions = "x"\npermissions.x.extends = ":read-only"\n'
        'permissions.x.network = { enabled = false, domains = { a = "allow" } }',
        "features.network_proxy.enabled = true",
        "features.credential_masking = false",
        'forced_login_method = "api"',
        'forced_login_method = "chatgpt"',
        'approvals_reviewer = "auto_review"\nauto_review.policy = "be strict"',
    ],
)
def test_a_setting_that_asks_for_no_protection_stops_nothing(place: Place, text: str):
    place.user(text)
    assert place.load().unenforced == ()


def test_every_protection_is_told_at_once(place: Place):
    place.user(
        "shell_environment_policy.experimental_use_profile = true\n"
        "features.credential_masking = true\n"
    )
    with pytest.raises(ConfigError) as raised:
        place.load().require_enforced()
    assert len(str(raised.value).splitlines()) == 2


def test_a_project_accepts_nothing_and_its_own_protections_count_if_it_is_trusted(
    place: Place,
):
    path = place.project(
        'allow_unenforced = ["features.credential_masking"]\nfeatures.credential_masking = true\n'
    )
    assert place.load().unenforced == ()
    place.trusted()
    config = place.load()
    assert [text.split(" ")[0] for text in config.unenforced] == [f"{path}:2:"]
    assert config.warnings == (
        f"Ignored `allow_unenforced` in {path}: a project may not set this.",
    )


def test_the_acceptances_of_two_layers_add_up(place: Place):
    place.user(
        "features.credential_masking = true\n"
        'allow_unenforced = ["shell_environment_policy.experimental_use_profile"]\n'
        "shell_environment_policy.experimental_use_profile = true\n"
    )
    config = place.load(flags={"allow_unenforced": ["features.credential_masking"]})
    assert config.unenforced == ()


def _mode(config: Config) -> str | None:
    return config.sandbox_mode


def test_a_profile_wins_over_the_sandbox_mode_beside_it_and_a_stronger_layer_over_both(
    place: Place,
):
    # As in Codex 0.169.
    place.user('sandbox_mode = "workspace-write"\n' + _LOCKED)
    config = place.load()
    assert _mode(config) == "read-only"
    assert len(config.unenforced) == 1
    config = place.load(flags={"sandbox_mode": "workspace-write"})
    assert _mode(config) == "workspace-write"
    assert len(config.unenforced) == 1


def test_managed_settings_win_over_the_command_line(place: Place):
    path: Path = place.system / "managed_config.toml"
    path.write_text('sandbox_mode = "read-only"\n', encoding="utf-8")
    config = place.load(flags={"sandbox_mode": "danger-full-access"})
    assert _mode(config) == "read-only"
    assert f"from managed config {path}:1" in place.explain("sandbox_mode")
