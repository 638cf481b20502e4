"""Also tests `config/role_files.py`."""

import os
from pathlib import Path

import pytest

from codex_py.config.config import load_config
from codex_py.config.role_files import Role
from codex_py.config.roles import BUILT_IN, Roles, find_roles
from codex_py.errors import ConfigError
from codex_py.protocol.tools import AGENT_TOOLS, COMMAND_TOOLS
from tests.config.conftest import Place

TOML = 'name = "{0}"\ndescription = "about {0}"\ndeveloper_instructions = "Be {0}."\n'
MARKDOWN = "---\nname: {0}\ndescription: about {0}\n{1}---\nBe {0}.\n"
READ_ONLY_TOOLS = COMMAND_TOOLS | {"view_image"}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def find(place: Place) -> Roles:
    config = load_config(
        cwd=place.cwd, environment=place.environment, system=place.system
    )
    return find_roles(config, place.environment)


def own(roles: Roles) -> dict[str, Role]:
    return {name: role for name, role in roles.found.items() if role not in BUILT_IN}


def markdown(place: Place, fields: str) -> Role:
    write(place.home / "agents" / "it.md", MARKDOWN.format("it", fields))
    return find(place).found["it"]


def test_the_built_in_roles_are_always_there(place: Place) -> None:
    roles = find(place)
    assert [*roles.found] == ["default", "explorer", "worker"]
    assert roles.warnings == ()


def test_roles_are_found_where_codex_and_claude_code_have_them(place: Place) -> None:
    place.trusted()
    (place.cwd / ".codex").mkdir(exist_ok=True)
    paths = [
        write(place.cwd / ".codex/agents/a.toml", TOML.format("a")),
        write(place.cwd / ".claude/agents/b.md", MARKDOWN.format("b", "")),
        write(place.root / ".codex/agents/c.md", MARKDOWN.format("c", "")),
        write(place.home / "agents/d.toml", TOML.format("d")),
        write(place.home / "agents/e.md", MARKDOWN.format("e", "")),
        write(place.home.parent / ".claude/agents/f.md", MARKDOWN.format("f", "")),
    ]
    roles = find(place)
    assert roles.warnings == ()
    assert own(roles) == {
        name: Role(name, f"about {name}", f"Be {name}.", source=path)
        for name, path in zip("abcdef", paths, strict=True)
    }


def test_all_settings_of_a_toml_file_are_read(place: Place) -> None:
    path = write(
        place.home / "agents" / "a.toml",
        TOML.format("a")
        + 'model = "groq/llama"\nmodel_reasoning_effort = "low"\nsandbox_mode = "read-only"\n'
        'nickname_candidates = ["Ada", "Bob"]\n',
    )
    assert find(place).found["a"] == Role(
        "a",
        "about a",
        "Be a.",
        "groq/llama",
        "low",
        "read-only",
        nicknames=("Ada", "Bob"),
        source=path,
    )


def test_a_table_names_a_file_beside_its_configuration(place: Place) -> None:
    file = write(
        place.home / "roles/r.toml",
        'name = "x"\ndeveloper_instructions = "Be r."\nmodel = "m"\n',
    )
    place.user(
        '[agents.r]\ndescription = "about r"\nconfig_file = "roles/r.toml"\n'
        'nickname_candidates = ["Rae"]\n[agents.bare]\ndescription = "about bare"\n'
    )
    roles = find(place)
    assert roles.found["r"] == Role(
        "r", "about r", "Be r.", "m", nicknames=("Rae",), source=file
    )
    assert roles.found["bare"].description == "about bare"
    assert roles.warnings == ()


def test_a_file_that_a_table_names_is_not_found_twice(place: Place) -> None:
    write(place.home / "agents/r.toml", TOML.format("r"))
    place.user('[agents.r]\nconfig_file = "agents/r.toml"\n')
    roles = find(place)
    assert roles.found["r"].instructions == "Be r."
    assert roles.warnings == ()


def test_roles_of_a_project_that_is_not_trusted_are_left_alone(place: Place) -> None:
    write(place.root / ".codex/agents/a.toml", TOML.format("a"))
    write(place.root / ".claude/agents/b.md", MARKDOWN.format("b", ""))
    assert own(find(place)) == {}


def test_the_nearest_of_two_roles_of_a_name_wins_and_that_is_said(place: Place) -> None:
    place.trusted()
    near = write(place.cwd / ".codex/agents/a.toml", TOML.format("a"))
    far = write(place.root / ".codex/agents/a.toml", TOML.format("a"))
    home = write(place.home / "agents/a.md", MARKDOWN.format("a", ""))
    roles = find(place)
    assert roles.found["a"].source == near
    assert roles.warnings == (
        f"The role 'a' is that of {near}; that of {far} is not used.",
        f"The role 'a' is that of {near}; that of {home} is not used.",
    )


def test_a_role_may_replace_a_built_in_one(place: Place) -> None:
    write(place.home / "agents/a.toml", TOML.format("worker"))
    roles = find(place)
    assert roles.found["worker"].instructions == "Be worker."
    assert roles.warnings == ()


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        *((name, READ_ONLY_TOOLS) for name in ("Read", "Grep", "Glob", "LS")),
        *(
            (name, {"apply_patch"})
            for name in ("Edit", "Write", "MultiEdit", "NotebookEdit")
        ),
        ("Bash", COMMAND_TOOLS),
        ("Task", AGENT_TOOLS),
        ("WebSearch", {"web_search"}),
        ("TodoWrite", {"update_plan"}),
        ("shell", COMMAND_TOOLS),
        ("apply_patch", {"apply_patch"}),
        ("mcp__docs__search", {"mcp__docs__search"}),
        ("mcp__docs", {"mcp__docs"}),
        ("mcp__docs__*", {"mcp__docs"}),
    ],
)
def test_each_name_of_a_tool_means_tools_of_ours(
    place: Place, written: str, tools: set[str]
) -> None:
    role = markdown(place, f"tools: {written}\n")
    assert role.tools == tools
    assert role.reads_only == (tools == READ_ONLY_TOOLS)
    assert find(place).warnings == ()


@pytest.mark.parametrize(
    "tools",
    [
        "Read, Bash, Write",
        "[Read, Bash, Write]",
        '["Read", "Bash", "Write"]',
        "Read Bash Write",
        "\n  - Read\n  - Bash\n  - Write",
        "\n- Read\n- Bash\n- Write",
    ],
)
def test_tools_are_a_list_in_any_form(place: Place, tools: str) -> None:
    role = markdown(place, f"tools: {tools}\n")
    assert role.tools == READ_ONLY_TOOLS | {"apply_patch"}
    assert not role.reads_only
    assert role.sandbox_mode is None


def test_a_role_that_only_reads_has_a_read_only_sandbox(place: Place) -> None:
    role = markdown(place, "tools: Read, Grep\n")
    assert role.reads_only
    assert role.sandbox_mode == "read-only"
    role = markdown(place, "tools: Read, Edit\n")
    assert role.reads_only
    assert role.sandbox_mode is None


def test_a_command_that_is_allowed_by_its_words_may_only_read(place: Place) -> None:
    for tools in (
        "Bash(git diff:*), Bash(git log, all)",
        "Bash(git diff:*",
        "Bash(" * 10_000,
    ):
        role = markdown(place, f"tools: {tools}\n")
        assert role.tools == COMMAND_TOOLS
        assert role.reads_only


def test_other_fields_of_claude_code_are_told_and_those_that_protect_are_kept(
    place: Place,
) -> None:
    role = markdown(place, "color: red\nmaxTurns: 5\npermissionMode: plan\n")
    assert role.sandbox_mode == "read-only"
    assert find(place).warnings == (
        f"The role 'it' of {role.source} has settings without effect: `maxTurns`.",
    )
    write(
        place.home / "agents/it.md", MARKDOWN.format("it", "disallowedTools: Write\n")
    )
    roles = find(place)
    assert own(roles) == {}
    assert "`disallowedTools` is not supported" in roles.warnings[0]


def test_no_list_and_a_star_are_all_tools(place: Place) -> None:
    assert markdown(place, "").tools is None
    assert markdown(place, "tools: '*'\n").tools is None
    assert markdown(place, "tools: ['*']\n").tools is None
    assert markdown(place, "tools:\n").tools == frozenset()


def test_names_of_tools_that_are_not_known_are_told(place: Place) -> None:
    role = markdown(place, "tools: Read, Teleport\n")
    assert role.tools == READ_ONLY_TOOLS | {"Teleport"}
    assert find(place).warnings == (
        f"The role 'it' of {role.source} has unknown tools: Teleport.",
    )
    markdown(place, f"tools: {'Teleport ' * 5_000}\n")
    assert len(find(place).warnings[0]) < 2_000


@pytest.mark.parametrize(
    "model", ["inherit", "sonnet", "opus", "haiku", "opus[1m]", ""]
)
def test_models_of_claude_code_are_the_model_of_the_parent(
    place: Place, model: str
) -> None:
    assert markdown(place, f"model: {model}\n").model is None


def test_any_other_model_is_taken_as_it_is(place: Place) -> None:
    role = markdown(
        place, "model: anthropic/claude-opus-4\nisolation: worktree\ncolor: red\n"
    )
    assert role.model == "anthropic/claude-opus-4"
    assert role.isolation == "worktree"


BROKEN = {
    "a.toml": ("name = \n", ":1:8: "),
    "b.toml": (
        'name = "b"\ndescription = "x"\n',
        ":1: it has no `developer_instructions`.",
    ),
    "c.toml": (
        'developer_instructions = "x"\nname = 3\n',
        ":2: `name` must be a string",
    ),
    "d.toml": (
        TOML.format("d") + 'sandbox_mode = "all"\n',
        ":4: `sandbox_mode` must be one of",
    ),
    "e.toml": (TOML.format("e\\u001b[2J"), ": 'e\\x1b[2J' is not a name for a role."),
    "f.toml": (
        TOML.format("f") + 'nickname_candidates = ["a\\u0007"]\n',
        ": the nickname 'a\\x07'",
    ),
    "g.toml": ("x = " + "[" * 10_000, ""),
    "h.md": ("no front matter\n", ":1: it has no front matter."),
    "i.md": (
        "---\nname: i\nno field\n---\n",
        ":3: the front matter has a line that is no field",
    ),
    "j.md": ("---\nname: j\n---\n", ":1: it has no `description`."),
    "k.md": (
        MARKDOWN.format("k", "isolation: vm\n"),
        ": `isolation` must be `worktree`, not 'vm'.",
    ),
    "l.md": ("x" * 70_000, " cannot be read: it is larger than 64 KiB."),
}


def test_each_broken_file_is_told_once_and_the_others_work(place: Place) -> None:
    for name, (text, _) in BROKEN.items():
        write(place.home / "agents" / name, text)
    (place.home / "agents" / "m.md").write_bytes(b"\xff")
    os.mkfifo(place.home / "agents" / "n.toml")
    write(place.home / "agents" / "z.toml", TOML.format("z"))
    roles = find(place)
    assert [*own(roles)] == ["z"]
    opening = "Ignoring malformed agent role definition: "
    assert len(roles.warnings) == len(BROKEN) + 2
    for warning, (name, (_, text)) in zip(roles.warnings, BROKEN.items(), strict=False):
        assert warning.startswith(f"{opening}{place.home}/agents/{name}{text}")
        assert warning.isprintable()


def test_settings_that_a_role_cannot_have_are_told(place: Place) -> None:
    path = write(
        place.home / "agents/a.toml",
        TOML.format("a") + 'approval_policy = "never"\n[sandbox_workspace_write]\n',
    )
    assert find(place).warnings == (
        f"The role 'a' of {path} has settings without effect: `approval_policy`,"
        " `sandbox_workspace_write`.",
    )


def test_nothing_is_read_out_of_a_project(place: Place) -> None:
    outside = write(place.home.parent / "outside/a.toml", TOML.format("a"))
    write(place.home.parent / "outside/b.md", MARKDOWN.format("b", ""))
    place.project(f'[agents.c]\ndescription = "c"\nconfig_file = "{outside}"\n')
    place.trusted()
    (place.root / ".codex/agents").mkdir()
    (place.root / ".codex/agents/a.toml").symlink_to(outside)
    (place.root / ".claude").mkdir()
    (place.root / ".claude/agents").symlink_to(outside.parent)
    roles = find(place)
    assert own(roles) == {}
    assert len(roles.warnings) == 3


def test_a_path_that_cannot_be_one_is_refused(place: Place) -> None:
    place.user('[agents.a]\ndescription = "a"\nconfig_file = "a\\u0000b"\n')
    with pytest.raises(ConfigError, match="config_file` must be a path"):
        find(place)


def test_descriptions_are_bounded_and_of_one_line(place: Place) -> None:
    text = "---\nname: a\ndescription: |\n  one\n  t\x1bwo " + "x" * 5000 + "\n---\n"
    write(place.home / "agents/a.md", text)
    description = find(place).found["a"].description
    assert description.startswith("one t\ufffdwo x")
    assert len(description) == 1024


def test_each_table_of_a_layer_is_a_role(place: Place) -> None:
    place.user('[agents.a]\ndescription = "a"\n[agents.b]\ndescription = "b"\n')
    config = place.load(
        overrides=["agents.c.description='c'", "agents.d.description='d'"]
    )
    assert {*own(find_roles(config, place.environment))} == {*"abcd"}
