import tomllib

import pytest

from codex_py.errors import ConfigError
from tests.config.conftest import Place


def test_a_setting_is_told_with_its_place_and_what_it_overrides(place: Place):
    user = place.trusted("# mine\nmodel = 'user'")
    project = place.project("model = 'project'")
    assert place.explain("model", overrides=["model=now"]) == (
        'model = "now"\n'
        "  from -c\n"
        f'  overrides "project" from project config {project}:1\n'
        f'  overrides "user" from user config {user}:2'
    )


def test_a_table_is_told_key_by_key_without_its_secrets(place: Place):
    user = place.user(
        "[mcp_servers.s]\ncommand = 'x'\nargs = ['a', 'b']\n[mcp_servers.s.env]\nKEY = 's3cr3t'\n"
    )
    assert place.explain(
        "mcp_servers.s", overrides=["mcp_servers.s.enabled=false"]
    ) == (
        'mcp_servers.s.command = "x"\n'
        f"  from user config {user}:2\n"
        'mcp_servers.s.args = ["a", "b"]\n'
        f"  from user config {user}:3\n"
        'mcp_servers.s.env.KEY = "***"\n'
        f"  from user config {user}:5\n"
        "mcp_servers.s.enabled = false\n"
        "  from -c"
    )


@pytest.mark.parametrize(
    "table",
    [
        "model_providers.p.query_params",
        "model_providers.p.http_headers",
        "shell_environment_policy.set",
        "mcp_servers.s.env",
        "mcp_servers.s.http_headers",
        "otel.exporter.otlp-http.headers",
    ],
)
def test_a_value_that_may_be_a_key_is_not_shown(place: Place, table: str):
    place.user(f'[{table}]\nNAME = "s3cr3t"\n')
    shown = place.explain(table)
    assert "s3cr3t" not in shown
    assert f'{table}.NAME = "***"' in shown


def test_hooks_override_no_others(place: Place):
    user = place.user("[[hooks.Stop]]\nhooks = []\n")
    assert place.explain("hooks", overrides=["hooks.Stop=[{}]"]) == (
        "hooks.Stop = [{}]\n"
        "  from -c\n"
        f"  besides [{{ hooks = [] }}] from user config {user}:1\n"
        "Hooks of `hooks.json` files run too; /hooks in the terminal lists them all."
    )


def test_secrets_are_hidden_in_an_overridden_table_too(place: Place):
    place.user("[mcp_servers.s.env]\nKEY = 's3cr3t'\n")
    assert "s3cr3t" not in place.explain(
        "mcp_servers.s", overrides=["mcp_servers.s.env={}"]
    )


def test_an_address_is_told_without_its_password_and_query(place: Place):
    user = place.user(
        "openai_base_url = 'https://me:s3cr3t@h:8/v1?key=s3cr3t'\ninstructions = 'who? me@x'\n"
    )
    assert place.explain("openai_base_url") == (
        f'openai_base_url = "https://h:8/v1"\n  from user config {user}:1'
    )
    assert place.explain("instructions").startswith('instructions = "who? me@x"\n')


def test_an_unset_key_has_its_default(place: Place):
    assert place.explain("project_doc_max_bytes") == (
        "project_doc_max_bytes = 32768\n  the default; it is set nowhere"
    )
    assert place.explain("history") == (
        'history.persistence = "save-all"\n  the default; it is set nowhere\n'
        "history.redact = false\n  the default; it is set nowhere"
    )
    for key in (
        "review_model",
        "allowed_sandbox_modes",
        "permissions.filesystem.deny_read",
    ):
        assert place.explain(key) == f"{key} is set nowhere and has no default"


def test_a_default_that_depends_on_trust_or_on_the_command_is_told(place: Place):
    assert place.explain("sandbox_mode") == (
        'sandbox_mode = "read-only"; in a trusted project "workspace-write"\n'
        "  the default; it is set nowhere"
    )
    assert place.explain("approval_policy") == (
        'approval_policy = "on-request"; for `exec` "never"\n'
        "  the default; it is set nowhere"
    )


def test_an_unknown_key_gets_a_suggestion(place: Place):
    with pytest.raises(ConfigError) as raised:
        place.explain("modle")
    assert str(raised.value) == "`modle` is no known setting; did you mean `model`?"


def test_a_value_is_shown_as_toml_that_does_not_steer_a_terminal(place: Place):
    text = "ü \\u001b[31m \\u009b\\u202e \\U0001F600"
    place.user(f'model = "{text}"\nmcp_servers."\\u001b[31m".command = "x"\n')
    assert (
        place.explain("mcp_servers").splitlines()[0]
        == 'mcp_servers."\\U0000001B[31m".command = "x"'
    )
    shown = place.explain("model").splitlines()[0]
    assert shown == 'model = "ü \\u001b[31m \\U0000009B\\U0000202E \U0001f600"'
    assert tomllib.loads(shown) == {"model": "ü \x1b[31m \x9b\u202e \U0001f600"}
