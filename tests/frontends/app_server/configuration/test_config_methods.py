"""The configuration, read and changed by a client. Shapes and words are those of `codex app-server` 0.171.

Tests `config/hidden.py`, `frontends/app_server/configuration/config_edits.py`,
`frontends/app_server/configuration/config_layers.py`,
`frontends/app_server/configuration/config_params.py`,
`frontends/app_server/configuration/config_writer.py`,
`frontends/app_server/configuration/config_methods.py`,
`frontends/app_server/configuration/requirement_facts.py` and
`frontends/app_server/configuration/skill_switches.py`.
"""

import json
import threading
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.json_rpc import INVALID_PARAMS, RpcError
from codex_py.errors import ConfigError
from codex_py.frontends.app_server.configuration.config_methods import ConfigMethods
from codex_py.protocol.checked import WrongValue
from codex_py.testing import Pause, RecordedRequest, ev_completed, ev_message
from tests.support.app_server import AppServer
from tests.support.app_server_groups import Groups
from tests.support.codex import ask_app_server, needs_codex
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

MINE = """\
# mine
model = "gpt-5.5"  # the best
approval_policy = "on-request"

[sandbox_workspace_write]
writable_roots = ["/tmp"]

# about one
[mcp_servers.one]
command = "x"
env = { TOKEN = "sk-secret" } # the key

[mcp_servers.two]
url = "https://me:password@example.com/mcp"
http_headers = { Authorization = "Bearer secret" }

[model_providers.mine]
name = "Mine"
base_url = "https://example.com/v1?key=secret"
experimental_bearer_token = "secret"
"""
EMPTY_VERSION = (
    "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
)
"""The version of a file without settings, as Codex computes it."""


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The administrator's folder."""
    folder = tmp_path / "etc"
    folder.mkdir()
    return folder


@pytest.fixture
def client(place: Workplace, system: Path) -> Groups:
    write(place, MINE)
    return Groups(place.home, place.cwd, system, ConfigMethods)


def write(place: Workplace, text: str) -> Path:
    path = place.home / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def text_of(place: Workplace) -> str:
    return (place.home / "config.toml").read_text("utf-8")


def edit(key: str, value: Any, strategy: str = "replace") -> Mapping[str, Any]:
    return {"keyPath": key, "value": value, "mergeStrategy": strategy}


def put(
    client: Groups, key: str, value: Any, strategy: str = "replace", **more: Any
) -> Any:
    return client.ask("config/value/write", **edit(key, value, strategy), **more)


def refusal(client: Groups, key: str, value: Any, **more: Any) -> RpcError:
    return client.refused("config/value/write", **edit(key, value), **more)


def user_version(client: Groups) -> str:
    layers = client.ask("config/read", includeLayers=True)["layers"]
    return next(each["version"] for each in layers if each["name"]["type"] == "user")


def test_the_settings_are_told_with_their_layers(
    client: Groups, place: Workplace, system: Path
) -> None:
    (system / "config.toml").write_text('model = "x"\nweb_search = "live"\n', "utf-8")
    answer = client.ask("config/read", includeLayers=True)
    user = {"type": "user", "file": str(place.home / "config.toml"), "profile": None}
    machine = {"type": "system", "file": str(system / "config.toml")}
    assert answer["config"]["model"] == "gpt-5.5"
    assert answer["config"]["web_search"] == "live"
    assert answer["config"]["model_verbosity"] is None
    assert answer["config"]["sandbox_workspace_write"]["network_access"] is False
    origins = {name: about["name"] for name, about in answer["origins"].items()}
    assert origins == {
        "model": user,
        "approval_policy": user,
        "sandbox_workspace_write.writable_roots.0": user,
        "mcp_servers.one.command": user,
        "mcp_servers.one.env.TOKEN": user,
        "mcp_servers.two.url": user,
        "mcp_servers.two.http_headers.Authorization": user,
        "model_providers.mine.name": user,
        "model_providers.mine.base_url": user,
        "model_providers.mine.experimental_bearer_token": user,
        "web_search": machine,
    }
    assert [layer["name"] for layer in answer["layers"]] == [user, machine]
    assert answer["layers"][1]["config"] == {"model": "x", "web_search": "live"}


def test_credentials_are_hidden(client: Groups) -> None:
    answer = client.ask("config/read", includeLayers=True)
    assert "secret" not in json.dumps(answer)
    assert "password" not in json.dumps(answer)
    assert answer["config"]["mcp_servers"] == {
        "one": {"command": "x", "env": {"TOKEN": "***"}},
        "two": {
            "url": "https://example.com/mcp",
            "http_headers": {"Authorization": "***"},
        },
    }


def test_files_that_do_not_exist_are_layers_too(
    client: Groups, place: Workplace
) -> None:
    (place.home / "config.toml").unlink()
    layers = client.ask("config/read", includeLayers=True)["layers"]
    assert [layer["name"]["type"] for layer in layers] == ["user", "system"]
    assert [layer["version"] for layer in layers] == [EMPTY_VERSION] * 2


def test_a_project_counts_for_its_folder_alone(
    client: Groups, place: Workplace
) -> None:
    write(place, f'{MINE}[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
    folder = place.cwd / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text('model = "theirs"\n', "utf-8")
    assert client.ask("config/read")["config"]["model"] == "gpt-5.5"
    answer = client.ask("config/read", cwd=str(place.cwd))
    assert answer["config"]["model"] == "theirs"
    source = {"type": "project", "dotCodexFolder": str(folder)}
    assert answer["origins"]["model"]["name"] == source
    # A project's mistake is none of the user's file.
    (folder / "config.toml").write_text("model = 5\n", "utf-8")
    assert put(client, "model", "other")["status"] == "ok"


@pytest.mark.parametrize(
    ("setting", "key", "shown"),
    [
        ('approval_policy = "on-failure"', "approval_policy", "on-request"),
        (
            "approval_policy = { granular = { rules = true, sandbox_approval = true,"
            " mcp_elicitations = false } }",
            "approval_policy",
            {
                "granular": {
                    "rules": True,
                    "sandbox_approval": True,
                    "mcp_elicitations": False,
                    "request_permissions": False,
                    "skill_approval": False,
                }
            },
        ),
        ("tools.web_search = true", "tools", {"web_search": None}),
        ("x = 1979-05-27", "x", "1979-05-27"),
        ("x = [nan, 1.5]", "x", [None, 1.5]),
    ],
)
def test_settings_have_the_form_of_the_protocol(
    client: Groups, place: Workplace, setting: str, key: str, shown: Any
) -> None:
    write(place, setting)
    assert client.ask("config/read")["config"][key] == shown


def test_a_value_is_written_and_all_else_stays(
    client: Groups, place: Workplace
) -> None:
    answer = put(client, "model", "gpt-6")
    assert answer == {
        "status": "ok",
        "version": user_version(client),
        "filePath": str(place.home / "config.toml"),
        "overriddenMetadata": None,
    }
    assert text_of(place) == MINE.replace("gpt-5.5", "gpt-6")


@pytest.mark.parametrize(
    ("key", "value", "strategy", "before", "after"),
    [
        ("approval_policy", None, "replace", 'approval_policy = "on-request"\n', ""),
        ("absent.key", None, "replace", "", ""),
        (
            "model_context_window",
            1000,
            "replace",
            'approval_policy = "on-request"\n',
            'approval_policy = "on-request"\nmodel_context_window = 1000\n',
        ),
        (
            "sandbox_workspace_write.network_access",
            True,
            "replace",
            'writable_roots = ["/tmp"]\n',
            'writable_roots = ["/tmp"]\nnetwork_access = true\n',
        ),
        (
            "mcp_servers.one",
            {"command": "y"},
            "upsert",
            'command = "x"',
            'command = "y"',
        ),
        (
            "mcp_servers.one",
            {"command": "y"},
            "replace",
            'command = "x"\nenv = { TOKEN = "sk-secret" } # the key\n',
            'command = "y"\n',
        ),
        (
            "mcp_servers.one",
            {"command": "y", "env": {"TOKEN": "***"}},
            "replace",
            'command = "x"\nenv = { TOKEN = "sk-secret" } # the key\n',
            'command = "y"\n\n[mcp_servers.one.env]\nTOKEN = "sk-secret"\n',
        ),
        ("mcp_servers.one.env", {}, "upsert", "", ""),
        ("mcp_servers.two.url", "https://example.com/mcp", "replace", "", ""),
        (
            "mcp_servers.two.url",
            "https://example.org/mcp",
            "replace",
            "https://me:password@example.com/mcp",
            "https://example.org/mcp",
        ),
        (
            "mcp_servers.one.args",
            ["a"],
            "upsert",
            'env = { TOKEN = "sk-secret" } # the key\n',
            'env = { TOKEN = "sk-secret" } # the key\nargs = ["a"]\n',
        ),
    ],
)
def test_changes_keep_comments_credentials_and_order(
    client: Groups,
    place: Workplace,
    key: str,
    value: Any,
    strategy: str,
    before: str,
    after: str,
) -> None:
    assert put(client, key, value, strategy)["status"] == "ok"
    assert text_of(place) == MINE.replace(before, after)


def test_credentials_in_arrays_stay_wherever_their_text_moves(
    client: Groups, place: Workplace
) -> None:
    write(place, 'notify = ["x", "https://me:password@h/?key=1"]\n')
    shown = client.ask("config/read")["config"]["notify"]
    assert shown == ["x", "https://h/"]
    put(client, "notify", ["https://h/", "y", "x"])
    assert text_of(place) == 'notify = ["https://me:password@h/?key=1", "y", "x"]\n'


@pytest.mark.parametrize(
    ("key", "path"),
    [
        ('projects."/a.b/c".trust_level', '[projects."/a.b/c"]'),
        ("projects./a/c.trust_level", '[projects."/a/c"]'),
    ],
)
def test_keys_may_be_quoted(
    client: Groups, place: Workplace, key: str, path: str
) -> None:
    put(client, key, "trusted")
    assert text_of(place) == f'{MINE}\n{path}\ntrust_level = "trusted"\n'


def test_a_change_of_another_version_is_refused(
    client: Groups, place: Workplace
) -> None:
    version = user_version(client)
    put(client, "model", "a", expectedVersion=version)
    before = text_of(place)
    error = refusal(client, "model", "b", expectedVersion=version)
    assert error.data == {"config_write_error_code": "configVersionConflict"}
    assert text_of(place) == before


def test_only_the_users_own_file_is_written(client: Groups, place: Workplace) -> None:
    (place.cwd / ".codex").mkdir()
    (place.cwd / "config.toml").symlink_to(place.home / "config.toml")
    put(client, "model", "a", filePath=str(place.home / "config.toml"))
    put(client, "model", "b", filePath=str(place.cwd / "config.toml"))
    for path in (
        "config.toml",
        "/etc/codex/config.toml",
        str(place.cwd / ".codex/config.toml"),
        str(place.home / "codex-py/config.toml"),
        "/\0",
    ):
        error = refusal(client, "model", "c", filePath=path)
        assert str(error) == "Only writes to the user config are allowed"
        assert error.data == {"config_write_error_code": "configLayerReadonly"}
    assert text_of(place) == MINE.replace("gpt-5.5", "b")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("", 1, "keyPath must not be empty"),
        ("a..b", 1, "keyPath segments must not be empty"),
        ("a" * 5000, 1, "keyPath has more than 4096 characters"),
        ("a." * 2000 + "a", 1, "keyPath has more than 32 segments"),
        ("model", 5, "`model` must be a string, not `5`"),
        ("model.x", 5, "`model` must be a table"),
        ("approval_policy", "sometimes", "`approval_policy` must be one of"),
        ("history", {"max_bytes": None}, "invalid type: null"),
        ("x", 2**63, "has more than 64 bits"),
        ("x", [[-(2**63) - 1]], "has more than 64 bits"),
        ("protection.denny", ["x"], "`protection.denny` is unknown"),
        ("mcp_servers.one.command", None, "mcp_servers.one"),
        ("default_permissions", "nobody", "undefined profile `nobody`"),
        ("mcp_servers.one.env.NEW", "***", "'***' stands for a hidden value"),
        ("profile", "x", "can no longer be written"),
        ("profiles.x.model", "y", "can no longer be written"),
        ("x", ["y" * 300_000], "a value has more than 262,144 bytes"),
    ],
)
def test_changes_that_could_not_be_read_again_are_refused(
    client: Groups, place: Workplace, key: str, value: Any, problem: str
) -> None:
    with pytest.raises((RpcError, ConfigError)) as caught:
        put(client, key, value)
    assert problem in str(caught.value)
    if isinstance(caught.value, RpcError):
        code = {"config_write_error_code": "configValidationError"}
        assert caught.value.data == code
    assert text_of(place) == MINE


def test_values_are_bounded_in_depth_and_number(
    client: Groups, place: Workplace
) -> None:
    deep: Any = 1
    for _ in range(80):
        deep = [deep]
    assert "inside each other" in str(refusal(client, "x", deep))
    wide = {str(number): number for number in range(300)}
    put(client, "x", {"y": 1})
    before = text_of(place)
    error = client.refused("config/value/write", **edit("x", wide, "upsert"))
    assert str(error) == "more than 256 keys in one request"
    assert text_of(place) == before


def test_a_request_does_not_hold_others_up(client: Groups, place: Workplace) -> None:
    servers = (f'[mcp_servers.s{number}]\ncommand = "x"\n' for number in range(4000))
    text = "".join(servers)
    write(place, text)
    edits = [edit(f"mcp_servers.s{number}.command", "y") for number in range(50)]
    error = client.refused("config/batchWrite", edits=edits)
    assert "too long for so many changes" in str(error)
    assert text_of(place) == text


def test_a_change_needs_a_value_even_if_it_is_null(client: Groups) -> None:
    with pytest.raises(WrongValue, match="missing field `value`"):
        client.ask("config/value/write", keyPath="model", mergeStrategy="replace")
    bad = {"keyPath": "model", "mergeStrategy": "replace"}
    with pytest.raises(WrongValue, match=r"missing field `edits.0.value`"):
        client.ask("config/batchWrite", edits=[bad])


def test_a_batch_is_written_whole_or_not_at_all(
    client: Groups, place: Workplace
) -> None:
    good = [
        edit("model", "a"),
        edit("model", "b"),
        edit("approval_policy", None),
        edit("tui.theme", "x"),
    ]
    bad = edit("model_context_window", "x")
    error = client.refused("config/batchWrite", edits=[*good, bad])
    assert "`model_context_window` must be" in str(error)
    assert text_of(place) == MINE
    answer = client.ask("config/batchWrite", edits=good)
    assert answer["version"] == user_version(client)
    after = MINE.replace("gpt-5.5", "b")
    after = after.replace('approval_policy = "on-request"\n', "")
    assert text_of(place) == f'{after}\n[tui]\ntheme = "x"\n'
    assert client.ask("config/batchWrite", edits=[])["status"] == "ok"


def test_a_first_setting_makes_the_file(client: Groups, place: Workplace) -> None:
    path = place.home / "config.toml"
    path.unlink()
    put(client, "model", "a", expectedVersion=EMPTY_VERSION)
    assert text_of(place) == 'model = "a"\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_stronger_layer_is_named(client: Groups, system: Path) -> None:
    (system / "managed_config.toml").write_text('model = "ours"\n', "utf-8")
    answer = put(client, "model", "mine")
    file = str(system / "managed_config.toml")
    assert answer["status"] == "okOverridden"
    overridden = answer["overriddenMetadata"]
    assert overridden["message"] == f"Overridden by legacy managed_config.toml: {file}"
    assert overridden["effectiveValue"] == "ours"
    source = {"type": "legacyManagedConfigTomlFromFile", "file": file}
    assert overridden["overridingLayer"]["name"] == source
    assert put(client, "model_verbosity", "low")["status"] == "ok"


REQUIRED = """\
allowed_approval_policies = ["on-failure", "untrusted"]
allowed_sandbox_modes = ["read-only", "workspace-write"]
allowed_web_search_modes = ["cached"]
allowed_approvals_reviewers = ["user", "someone"]
default_permissions = ":read-only"
allow_managed_hooks_only = true
additional_developer_instructions = "be nice"
enforce_residency = "us"

[allowed_permission_profiles]
":read-only" = true
":danger-full-access" = false

[features]
memories = false

[experimental_network.domains]
"a.example" = "allow"
"b.example" = "deny"

[hooks]
managed_dir = "/opt/hooks"
[[hooks.PreToolUse]]
matcher = "Bash"
hooks = [
  { type = "command", command = "check", timeout = 5 },
  { type = "mcp_tool", server = "s", tool = "t" },
  { type = "agent" },
]
"""


def test_requirements_hold_whatever_is_written(
    client: Groups, place: Workplace, system: Path
) -> None:
    (system / "requirements.toml").write_text(REQUIRED, "utf-8")
    answer = put(client, "approval_policy", "never")
    assert answer["status"] == "okOverridden"
    overridden = answer["overriddenMetadata"]
    # The protocol has no name for what is required.
    source = {"type": "system", "file": str(system / "requirements.toml")}
    assert overridden["overridingLayer"]["name"] == source
    assert overridden["message"].startswith("Overridden by requirements: ")
    assert overridden["effectiveValue"] == "on-failure"
    read = client.ask("config/read", includeLayers=True)
    assert read["config"]["approval_policy"] == "on-request"
    assert read["origins"]["approval_policy"]["name"] == source
    assert [layer["name"]["type"] for layer in read["layers"]] == [
        "system",
        "user",
        "system",
    ]
    before = text_of(place)
    error = refusal(client, "features.memories", True)
    assert str(error) == (
        "Invalid configuration: invalid value for `features`: `features.memories=true` is not in"
        f" the allowed set [memories=false] (set by {system / 'requirements.toml'})"
    )
    assert text_of(place) == before
    assert put(client, "features", {"memories": False})["status"] == "okOverridden"


def test_requirements_are_told(client: Groups, system: Path) -> None:
    assert client.ask("configRequirements/read") == {"requirements": None}
    (system / "requirements.toml").write_text(REQUIRED, "utf-8")
    told = client.ask("configRequirements/read")["requirements"]
    hooks = told.pop("hooks")
    assert told == {
        "allowedLoginMethods": ["api", "chatgpt"],
        "additionalDeveloperInstructions": "be nice",
        "allowedApprovalPolicies": ["on-request", "untrusted"],
        "allowedApprovalsReviewers": ["user"],
        "allowedSandboxModes": ["read-only"],
        "allowedPermissionProfiles": {":read-only": True, ":danger-full-access": False},
        "defaultPermissions": ":read-only",
        "allowedWebSearchModes": ["cached", "disabled"],
        "allowManagedHooksOnly": True,
        "featureRequirements": {"memories": False},
        "enforceResidency": "us",
        "network": {
            "enabled": None,
            "domains": {"a.example": "allow", "b.example": "deny"},
            "managedAllowedDomainsOnly": None,
            "allowedDomains": ["a.example"],
            "deniedDomains": ["b.example"],
            "allowLocalBinding": None,
        },
    }
    assert hooks["managedDir"] == "/opt/hooks"
    assert hooks["Stop"] == []
    (group,) = hooks["PreToolUse"]
    assert group["matcher"] == "Bash"
    assert [handler["type"] for handler in group["hooks"]] == [
        "command",
        "mcp_tool",
        "agent",
    ]
    assert group["hooks"][0]["timeoutSec"] == 5


def test_a_managed_policy_is_a_requirement(client: Groups, system: Path) -> None:
    (system / "managed_config.toml").write_text('approval_policy = "never"\n', "utf-8")
    told = client.ask("configRequirements/read")["requirements"]
    assert told["allowedApprovalPolicies"] == ["never"]
    assert told["allowedSandboxModes"] is None
    assert told["hooks"] is None
    assert told["network"] is None


def test_skills_are_switched_by_name_or_by_file(
    client: Groups, place: Workplace
) -> None:
    text = '[[skills.config]]\npath = "/a/SKILL.md" # mine\nenabled = false\n'
    write(place, text)
    for selector in ({"name": " one "}, {"path": "/b/../c/SKILL.md"}):
        answer = client.ask("skills/config/write", enabled=False, **selector)
        assert answer == {"effectiveEnabled": False}
    assert text_of(place) == (
        f'{text}\n[[skills.config]]\nname = "one"\nenabled = false\n'
        '\n[[skills.config]]\npath = "/c/SKILL.md"\nenabled = false\n'
    )
    # Another file of the same name stays off.
    for selector in ({"name": "one"}, {"path": "/c/SKILL.md"}, {"path": "/d"}):
        answer = client.ask("skills/config/write", enabled=True, **selector)
        assert answer == {"effectiveEnabled": True}
    assert tomllib.loads(text_of(place)) == tomllib.loads(text)
    client.ask("skills/config/write", enabled=True, path="/a/SKILL.md")
    assert tomllib.loads(text_of(place)) == {}


@pytest.mark.parametrize(
    "selector",
    [{}, {"name": "a", "path": "/a"}, {"name": " "}, {"path": "a"}, {"path": "/\0"}],
)
def test_a_switch_names_one_skill(
    client: Groups, place: Workplace, selector: Mapping[str, str]
) -> None:
    error = client.refused("skills/config/write", enabled=False, **selector)
    assert error.code == INVALID_PARAMS
    assert text_of(place) == MINE


def test_a_skill_that_the_system_disables_stays_off(
    client: Groups, place: Workplace, system: Path
) -> None:
    disabled = 'skills.config = [{ name = "one", enabled = false }]\n'
    (system / "config.toml").write_text(disabled, "utf-8")
    asked = {"enabled": True, "name": "one"}
    answer = client.ask("skills/config/write", **asked)
    assert answer == {"effectiveEnabled": False}
    assert text_of(place) == MINE


DONE = [*ev_message("done"), ev_completed()]


def offers_images(request: RecordedRequest) -> bool:
    return "view_image" in [tool.get("name") for tool in request.body["tools"]]


def test_a_reload_reaches_threads_with_their_next_turn(place: Workplace) -> None:
    with ScriptedServer([DONE] * 4) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            assert server.ended(thread)["status"] == "completed"
            for reload in (False, True, True):
                written = edit("features.view_image", False)
                asked = {"edits": [written], "reloadUserConfig": reload}
                server.ask("config/batchWrite", asked)
                server.turn(thread)
                assert server.ended(thread)["status"] == "completed"
        offered = [offers_images(request) for request in model.requests]
    assert offered == [True, True, False, False]


def test_a_reload_waits_for_the_end_of_a_turn(place: Workplace) -> None:
    gate = threading.Event()
    with ScriptedServer([[Pause(gate), *DONE], DONE]) as model:
        place.configure(model)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread()
            server.turn(thread)
            written = edit("features.view_image", False)
            asked = {"edits": [written], "reloadUserConfig": True}
            server.ask("config/batchWrite", asked)
            gate.set()
            assert server.ended(thread)["status"] == "completed"
            server.turn(thread)
            assert server.ended(thread)["status"] == "completed"
        offered = [offers_images(request) for request in model.requests]
    assert offered == [True, False]


def test_a_client_reads_and_writes_over_standard_input(place: Workplace) -> None:
    path = write(place, MINE)
    with AppServer(place.home, place.cwd) as server:
        read = server.ask("config/read", {"includeLayers": True, "cwd": None})
        assert read["config"]["model"] == "gpt-5.5"
        version = read["layers"][0]["version"]
        asked = {**edit("model", "a"), "expectedVersion": version}
        assert server.ask("config/value/write", asked)["filePath"] == str(path)
        assert server.refused("config/value/write", asked)["data"] == {
            "config_write_error_code": "configVersionConflict"
        }
        removed = server.ask("config/value/write", edit("model", None))
        assert removed["status"] == "ok"
        assert server.ask("configRequirements/read") == {"requirements": None}
        missing = server.refused("config/read", {"cwd": str(place.cwd / "nowhere")})
        assert "cannot work in" in missing["message"]


CHANGES: Sequence[tuple[str, Any]] = [
    ("config/value/write", edit("model", "a")),
    ("config/value/write", edit("nonsense.key", 5)),
    ("config/value/write", edit("model_reasoning_effort", "low")),
    ("config/value/write", edit("model_reasoning_effort", None)),
    ("config/value/write", edit("absent.key", None)),
    ("config/value/write", edit("mcp_servers.one", {"command": "y"}, "upsert")),
    ("config/value/write", edit('projects."/a.b/c".trust_level', "trusted")),
    ("config/value/write", edit("projects./a/c.trust_level", "untrusted")),
    ("config/value/write", edit("tui", {"theme": "x", "status_line": ["a"]}, "upsert")),
    ("config/value/write", edit("tui", {"theme": "y"}, "upsert")),
    ("config/value/write", edit("mcp_servers.two", {"command": "z"})),
    ("config/value/write", edit("mcp_servers.one", None)),
    ("skills/config/write", {"enabled": False, "name": "one"}),
    ("skills/config/write", {"enabled": False, "path": "/a/SKILL.md"}),
    ("skills/config/write", {"enabled": True, "name": "one"}),
    ("config/batchWrite", {"edits": []}),
    ("config/batchWrite", {"edits": [edit("notify", []), edit("model", "b")]}),
]


@needs_codex
def test_codex_reads_and_writes_the_same(place: Workplace) -> None:
    """The answers name the file, so both programs change the same one in turn."""
    path = write(place, MINE)
    reads = ("config/read", {"includeLayers": True})
    theirs = ask_app_server(environment(place.home), place.cwd, reads, *CHANGES, reads)
    text = path.read_text("utf-8")
    write(place, MINE)
    with AppServer(place.home, place.cwd) as server:
        ours = [server.ask(*each) for each in (reads, *CHANGES, reads)]
    assert ours[1:-1] == theirs[1:-1]
    for our, their in ((ours[0], theirs[0]), (ours[-1], theirs[-1])):
        assert our["origins"] == their["origins"]
        assert [{**layer, "config": None} for layer in our["layers"]] == [
            {**layer, "config": None} for layer in their["layers"]
        ]
    # Codex puts new tables elsewhere.
    assert tomllib.loads(text) == tomllib.loads(path.read_text("utf-8"))
