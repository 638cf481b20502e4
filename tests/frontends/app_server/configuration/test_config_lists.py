"""Lists of what the configuration offers. Shapes and words are those of `codex app-server` 0.171.

Tests `config/features.py` and `frontends/app_server/configuration/config_lists.py`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.json_rpc import RpcError
from codex_py.config.config import Config
from codex_py.config.skills import Skills, find_skills
from codex_py.errors import ConfigError
from codex_py.frontends.app_server.configuration import config_lists
from codex_py.frontends.app_server.configuration.config_lists import ListMethods
from codex_py.testing import ev_completed, ev_message
from tests.support.app_server import AppServer
from tests.support.app_server_groups import Groups
from tests.support.codex import ask_app_server, needs_codex
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

PROFILES = """\
default_permissions = "mine"

[permissions.mine]
description = "My own"
extends = ":workspace"

[permissions.careful.filesystem]
":root" = "read"
"""
HOOKS = """\
[[hooks.PreToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = "check", timeout = 5, statusMessage = "Checking" }]

[[hooks.Stop]]
hooks = [{ type = "mcp_tool", server = "s", tool = "t" }]
"""
PLAIN = {"pluginId": None, "environmentId": None, "additionalContextLimit": None}


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """The administrator's folder."""
    folder = tmp_path / "etc"
    folder.mkdir()
    return folder


@pytest.fixture
def client(place: Workplace, system: Path) -> Groups:
    return Groups(place.home, place.cwd, system, ListMethods)


def write(place: Workplace, text: str) -> None:
    trusted = f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n'
    (place.home / "config.toml").write_text(f"{text}\n{trusted}", encoding="utf-8")


def skill(folder: Path, name: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: About {name}\n---\n", "utf-8")
    return path


def allowed(answer: Mapping[str, Any]) -> dict[str, bool]:
    return {each["id"]: each["allowed"] for each in answer["data"]}


def test_profiles_are_listed_with_those_of_a_project(
    client: Groups, place: Workplace
) -> None:
    write(place, PROFILES)
    (place.cwd / ".codex").mkdir()
    theirs = '[permissions.theirs]\nextends = ":read-only"\n'
    (place.cwd / ".codex/config.toml").write_text(theirs, "utf-8")
    answer = client.ask("permissionProfile/list")
    own = {
        ":read-only": True,
        ":workspace": True,
        ":danger-full-access": True,
        "careful": True,
        "mine": True,
    }
    assert allowed(answer) == own
    assert list(allowed(answer)) == list(own)
    assert answer["data"][-1]["description"] == "My own"
    assert answer["nextCursor"] is None
    here = client.ask("permissionProfile/list", cwd=str(place.cwd))
    assert allowed(here) == {**own, "theirs": True}


@pytest.mark.parametrize(
    ("requirements", "refused"),
    [
        ('allowed_sandbox_modes = ["read-only"]', {":workspace", "mine"}),
        (
            'default_permissions = "ours"\n'
            '[allowed_permission_profiles]\nours = true\n":workspace" = true\n'
            '[permissions.ours]\nextends = ":read-only"\n',
            {":read-only", "careful", "mine"},
        ),
    ],
)
def test_the_administrator_allows_profiles(
    client: Groups,
    place: Workplace,
    system: Path,
    requirements: str,
    refused: set[str],
) -> None:
    write(place, PROFILES)
    (system / "requirements.toml").write_text(requirements, "utf-8")
    found = allowed(client.ask("permissionProfile/list"))
    assert {name for name in found if not found[name]} == {
        *refused,
        ":danger-full-access",
    }


def test_a_profile_with_a_mistake_is_not_allowed(
    client: Groups, place: Workplace
) -> None:
    write(place, f'{PROFILES}\n[permissions.wrong]\nextends = "nothing"\n')
    assert allowed(client.ask("permissionProfile/list"))["wrong"] is False


def test_lists_have_pages(client: Groups) -> None:
    names: list[str] = []
    cursor = None
    while cursor is not None or not names:
        answer = client.ask("permissionProfile/list", limit=2, cursor=cursor)
        assert len(answer["data"]) <= 2
        names += allowed(answer)
        cursor = answer["nextCursor"]
    assert names == [":read-only", ":workspace", ":danger-full-access"]
    assert len(client.ask("permissionProfile/list", limit=0)["data"]) == 1
    assert client.ask("permissionProfile/list", cursor="3")["data"] == []
    for cursor, problem in (
        ("x", "invalid cursor: x"),
        ("-1", "invalid cursor: -1"),
        ("٣", "invalid cursor: ٣"),
        ("9" * 5000, "invalid cursor: "),
        ("9", "cursor 9 exceeds total permission profiles 3"),
    ):
        error = client.refused("permissionProfile/list", cursor=cursor)
        assert str(error).startswith(problem)


def test_features_are_listed_with_their_state(client: Groups, place: Workplace) -> None:
    switches = "memories = true\nhooks = false\nnetwork_proxy = { enabled = true }\n"
    write(place, f"[features]\n{switches}")
    answer = client.ask("experimentalFeature/list")
    features = {each["name"]: each for each in answer["data"]}
    found = {
        name: (features[name]["enabled"], features[name]["defaultEnabled"])
        for name in ("memories", "hooks", "network_proxy", "undo")
    }
    assert found == {
        "memories": (True, False),
        "hooks": (False, True),
        "network_proxy": (True, False),
        "undo": (True, True),
    }
    stages = {each["stage"] for each in features.values()}
    assert stages == {"beta", "underDevelopment", "stable", "deprecated", "removed"}
    error = client.refused("experimentalFeature/list", threadId="x")
    assert str(error) == "thread not found: x"


def test_no_feature_is_switched_while_the_server_runs(client: Groups) -> None:
    asked = {"memories": True, "hooks": False, "nothing": True}
    answer = client.ask("experimentalFeature/enablement/set", enablement=asked)
    assert answer == {"enablement": {}}
    features = client.ask("experimentalFeature/list")["data"]
    (hooks,) = [each for each in features if each["name"] == "hooks"]
    assert hooks["enabled"] is True


def test_skills_are_listed_for_each_folder(client: Groups, place: Workplace) -> None:
    mine = skill(place.home / "skills", "mine")
    off = skill(place.home / "skills", "off")
    theirs = skill(place.cwd / ".codex/skills", "theirs")
    broken = place.home / "skills/broken/SKILL.md"
    broken.parent.mkdir()
    broken.write_text("nothing", "utf-8")
    write(place, f'[[skills.config]]\npath = "{off}"\nenabled = false\n')
    other = place.cwd.parent / "other"
    other.mkdir()
    nowhere = str(place.cwd / "nowhere")
    answer = client.ask("skills/list", cwds=[str(place.cwd), str(other), nowhere])
    here, there, nothing = answer["data"]

    def entry(path: Path, scope: str, *, enabled: bool = True) -> dict[str, Any]:
        return {
            "name": path.parent.name,
            "description": f"About {path.parent.name}",
            "path": str(path),
            "scope": scope,
            "enabled": enabled,
            "pluginId": None,
        }

    own = [entry(mine, "user"), entry(off, "user", enabled=False)]
    assert here["skills"] == [entry(theirs, "repo"), *own]
    assert there["skills"] == own
    (fault,) = here["errors"]
    assert fault["path"] == str(broken)
    assert "does not begin with a line" in fault["message"]
    assert (nothing["cwd"], nothing["skills"]) == (nowhere, [])
    assert "there is no folder" in nothing["errors"][0]["message"]
    assert client.ask("skills/list", forceReload=True)["data"] == [here]
    error = client.refused("skills/list", cwds=[str(other)] * 65)
    assert str(error) == "more than 64 folders in one request"


def test_a_folder_that_is_named_twice_is_looked_at_once(
    client: Groups, place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []

    def looks(config: Config, *args: Any, **kwargs: Any) -> Skills:
        looked.append(config.cwd)
        return find_skills(config, *args, **kwargs)

    monkeypatch.setattr(config_lists, "find_skills", looks)
    skill(place.home / "skills", "mine")
    cwd = str(place.cwd)
    first, second = client.ask("skills/list", cwds=[cwd, cwd])["data"]
    assert first == second
    assert looked == [place.cwd]


def test_further_folders_of_skills_are_those_of_the_last_request(
    client: Groups, place: Workplace
) -> None:
    further = place.cwd.parent / "further"
    found = skill(further, "found")
    assert client.ask("skills/extraRoots/set", extraRoots=[str(further)]) == {}
    (entry,) = client.ask("skills/list", cwds=[str(place.cwd)])["data"]
    (listed,) = entry["skills"]
    assert (listed["path"], listed["scope"]) == (str(found), "user")
    client.ask("skills/extraRoots/set", extraRoots=[])
    (entry,) = client.ask("skills/list", cwds=[str(place.cwd)])["data"]
    assert entry["skills"] == []
    error = client.refused("skills/extraRoots/set", extraRoots=["further"])
    assert str(error) == "extraRoots: 'further' is not absolute"
    error = client.refused("skills/extraRoots/set", extraRoots=[str(further)] * 65)
    assert str(error) == "more than 64 folders in one request"


def test_hooks_are_listed_with_their_trust(
    client: Groups, place: Workplace, system: Path
) -> None:
    write(place, HOOKS)
    managed = '[[hooks.Stop]]\nhooks = [{ type = "command", command = "ours" }]\n'
    (system / "config.toml").write_text(managed, "utf-8")
    (place.cwd / ".codex").mkdir()
    theirs = {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}
    (place.cwd / ".codex/hooks.json").write_text(json.dumps({"hooks": theirs}), "utf-8")
    (entry,) = client.ask("hooks/list")["data"]
    first, second, third, fourth = entry["hooks"]
    assert entry["cwd"] == str(place.cwd)
    assert (first["source"], first["isManaged"]) == ("system", True)
    assert first["trustStatus"] == "managed"
    file = str(place.home / "config.toml")
    assert second == {
        **PLAIN,
        "key": f"{file}:pre_tool_use:0:0",
        "eventName": "preToolUse",
        "handlerType": "command",
        "command": "check",
        "async": False,
        "matcher": "Bash",
        "timeoutSec": 5,
        "statusMessage": "Checking",
        "sourcePath": file,
        "source": "user",
        "displayOrder": 1,
        "enabled": True,
        "isManaged": False,
        "currentHash": second["currentHash"],
        "trustStatus": "untrusted",
    }
    assert (third["handlerType"], third["server"], third["tool"]) == (
        "mcpTool",
        "s",
        "t",
    )
    assert (fourth["source"], fourth["command"]) == ("project", "theirs")
    trust = {
        second["key"]: {"trusted_hash": second["currentHash"], "enabled": False},
        third["key"]: {"trusted_hash": "sha256:old"},
    }
    tables = [
        f"[hooks.state.{json.dumps(key)}]\n"
        + "".join(f"{name} = {json.dumps(value)}\n" for name, value in state.items())
        for key, state in trust.items()
    ]
    write(place, HOOKS + "\n".join(tables))
    (entry,) = client.ask("hooks/list")["data"]
    states_now = [
        (hook["enabled"], hook["trustStatus"]) for hook in entry["hooks"][1:3]
    ]
    assert states_now == [(False, "trusted"), (True, "modified")]


def test_hooks_that_are_misspelt_are_an_error_of_their_folder(
    client: Groups, place: Workplace
) -> None:
    write(place, HOOKS)
    (place.home / "hooks.json").write_text('{"hooks": {"PreTolUse": []}}', "utf-8")
    (entry,) = client.ask("hooks/list", cwds=[str(place.cwd)])["data"]
    assert entry["hooks"] == []
    assert "did you mean `PreToolUse`" in entry["errors"][0]["message"]


def test_lists_of_a_thread_are_those_of_its_folder(place: Workplace) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as model:
        place.configure(model)
        other = place.cwd.parent / "other"
        (other / ".codex").mkdir(parents=True)
        with AppServer(place.home, place.cwd) as server:
            thread = server.thread(cwd=str(other), config={"features.memories": True})
            (entry,) = server.ask("hooks/list", {"threadId": thread})["data"]
            assert entry["cwd"] == str(other)
            asked = {"threadId": thread}
            features = server.ask("experimentalFeature/list", asked)["data"]
            switches = {each["name"]: each["enabled"] for each in features}
            assert switches["memories"] is True
            both = {"threadId": thread, "cwds": [str(other)]}
            error = server.refused("hooks/list", both)
            assert error["message"] == "specify either threadId or cwds"
            for method in (
                "permissionProfile/list",
                "skills/list",
            ):
                assert server.ask(method, {})


def states(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The features without `undo`, which this program still has."""
    return {
        each["name"]: (each["stage"], each["enabled"], each["defaultEnabled"])
        for each in answer["data"]
        if each["name"] != "undo"
    }


@needs_codex
def test_codex_lists_the_same(place: Workplace) -> None:
    write(place, PROFILES + HOOKS)
    off = skill(place.home / "skills", "off")
    skill(place.cwd / ".agents/skills", "theirs")
    disabled = f'[[skills.config]]\npath = "{off}"\nenabled = false\n'
    write(place, PROFILES + HOOKS + disabled)
    (place.cwd / ".git").mkdir()
    (place.cwd / ".git/HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    questions: list[tuple[str, dict[str, Any]]] = [
        ("permissionProfile/list", {"limit": 4}),
        ("hooks/list", {"cwds": [str(place.cwd)]}),
        ("skills/list", {"cwds": [str(place.cwd)]}),
        ("experimentalFeature/list", {}),
    ]
    theirs = ask_app_server(environment(place.home), place.cwd, *questions)
    with AppServer(place.home, place.cwd) as server:
        ours = [server.ask(*question) for question in questions]
    assert ours[:2] == theirs[:2]
    skills: list[dict[str, Any]] = []
    for answer in (ours[2], theirs[2]):
        (entry,) = answer["data"]
        found = {each["name"]: each for each in entry["skills"]}
        # Codex has written skills of its own into the home meanwhile.
        skills.append({name: found[name] for name in ("off", "theirs")})
    assert skills[0] == skills[1]
    assert states(ours[3]) == states(theirs[3])


def test_an_unknown_folder_is_refused(client: Groups, place: Workplace) -> None:
    with pytest.raises((RpcError, ConfigError), match="there is no folder"):
        client.ask("permissionProfile/list", cwd=str(place.cwd / "nowhere"))
