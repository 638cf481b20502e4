import os
import random
import sys
from pathlib import Path

import pytest

from codex_py.config.mcp import McpServerConfig
from codex_py.errors import ConfigError
from tests.config.conftest import Place
from tests.support.packages import install_package


def test_the_strongest_layer_wins(place: Place):
    (place.system / "config.toml").write_text("model = 'system'\n", encoding="utf-8")
    assert place.load().model == "system"
    place.trusted("model = 'user'")
    assert place.load().model == "user"
    place.user("model = 'profile'\n", "work.config.toml")
    assert place.load(profile="work").model == "profile"
    place.project("model = 'root'")
    place.trust()
    assert place.load(profile="work").model == "root"
    place.project("model = 'sub'", place.cwd)
    place.trust()
    assert place.load(profile="work").model == "sub"
    assert place.load(overrides=["model=override"]).model == "override"
    assert (
        place.load(overrides=["model=override"], flags={"model": "flag"}).model
        == "flag"
    )


def test_tables_merge_deeply_and_arrays_replace(place: Place):
    (place.system / "config.toml").write_text(
        "notify = ['a', 'b']\n[mcp_servers.s]\ncommand = 'x'\nenv = { A = '1', B = '1' }\n",
        encoding="utf-8",
    )
    place.user("notify = ['c']\n[mcp_servers.s.env]\nB = '2'\n")
    config = place.load()
    assert config.notify == ("c",)
    assert config.mcp_servers == {
        "s": McpServerConfig(command="x", env={"A": "1", "B": "2"})
    }


def test_the_users_file_can_be_left_out(place: Place):
    place.user("model = 'user'")
    assert place.load(ignore_user_config=True).model == "gpt-6.1-sol"


def test_an_untrusted_project_has_no_say_and_the_user_is_told(place: Place):
    path = place.project("sandbox_mode = 'danger-full-access'\n")
    config = place.load()
    assert (config.sandbox_mode, config.trust) == (None, None)
    assert config.warnings == (
        f"Ignored {path}: this project is not trusted; to trust it, set"
        f' `projects."{place.root}".trust_level = "trusted"` in {place.home / "config.toml"}.',
    )


def test_an_untrusted_projects_file_is_not_even_parsed(place: Place):
    place.project("][")
    assert len(place.load().warnings) == 1


def test_a_project_may_not_decide_where_requests_go(place: Place):
    place.trusted()
    path = place.project(
        "model = 'm'\nmodel_provider = 'evil'\nnotify = ['evil']\n"
        "[projects.'/']\ntrust_level = 'trusted'\n"
    )
    config = place.load()
    assert (config.model, config.model_provider, config.notify) == ("m", "openai", None)
    assert config.warnings == (
        f"Ignored `model_provider`, `notify`, `projects` in {path}: a project may not set these.",
    )


def test_a_value_that_a_project_may_not_set_is_not_even_checked(place: Place):
    place.trusted()
    path = place.project("extensions = 1\notel.exporter = 1\n")
    told = f"Ignored `extensions`, `otel` in {path}: a project may not set these."
    assert place.load().warnings == (told,)


def test_a_project_loads_no_package_with_the_table_of_one(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packages = tmp_path / "packages"
    points = {"codex_py.tables": {"notes": "codex_py_notes:Notes"}}
    install_package(packages, "codex_py_notes", "import sys\nsys.exit(0)\n", points)
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    place.trusted()
    path = place.project("[notes]\nfile = 'x'\n")
    told = f"Ignored `notes` in {path}: a project may not set this."
    assert place.load().warnings == (told,)
    assert "codex_py_notes" not in sys.modules


def test_the_users_own_folder_is_no_project(place: Place):
    place.user("model_provider = 'p'")
    place.cwd = place.home.parent
    config = place.load()
    assert (config.model_provider, config.warnings) == ("p", ())


def test_the_project_does_not_choose_its_own_root(place: Place):
    place.trusted()
    place.project("project_root_markers = ['nothing']", place.cwd)
    assert place.load().project_root == place.root
    assert place.load(overrides=["project_root_markers=[]"]).project_root is None


def test_relative_paths_start_at_the_folder_of_their_file(place: Place):
    place.trusted("model_catalog_json = 'catalog.json'\nlog_dir = '~/log'")
    place.project("[sandbox_workspace_write]\nwritable_roots = ['data', '/abs']\n")
    config = place.load(overrides=["sqlite_home=here"])
    assert config.settings.model_catalog_json == place.home / "catalog.json"
    assert config.settings.log_dir == place.home.parent / "log"
    assert config.settings.sqlite_home == place.cwd / "here"
    assert config.sandbox_workspace_write.writable_roots == (
        place.root / ".codex" / "data",
        Path("/abs"),
    )


def test_unknown_keys_are_ignored_with_a_hint(place: Place):
    path = place.user("model = 'm'\nmodle = 'x'\n[tui]\nxyz = 1\n")
    config = place.load(overrides=["modl=x"])
    assert config.model == "m"
    assert config.warnings == (
        "Ignored an unknown setting in -c: `modl` (did you mean `model`?).",
        f"Ignored 2 unknown settings in {path}: `modle` (line 2; did you mean `model`?),"
        " `tui.xyz` (line 4).",
    )


@pytest.mark.parametrize(
    ("text", "line", "key", "meant"),
    [
        ('[protection]\nsecret = "deny"', 2, "protection.secret", "protection.secrets"),
        ('[protections]\nsecrets = "deny"', 1, "protections", "protection"),
        ("[protection]\ndney = ['a']", 2, "protection.dney", "protection.deny"),
        ("[gates]\nverfy = ['false']", 2, "gates.verfy", "gates.verify"),
        ("gates.forbid_paths = ['x']", 1, "gates.forbid_paths", "gates.forbid_path"),
        ("[gate]\nverify = ['false']", 1, "gate", "gates"),
        ("[budget]\nmax_cst = 1", 2, "budget.max_cst", "budget.max_cost"),
        ("[budgets]\nmax_cost = 1", 1, "budgets", "budget"),
        ('sandbox_mod = "read-only"', 1, "sandbox_mod", "sandbox_mode"),
        ('sandbox-mode = "read-only"', 1, "sandbox-mode", "sandbox_mode"),
        ('aproval_policy = "never"', 1, "aproval_policy", "approval_policy"),
        (
            "[sandbox_workspace_write]\nexclude_slash_temp = true",
            *(2, "sandbox_workspace_write.exclude_slash_temp"),
            "sandbox_workspace_write.exclude_slash_tmp",
        ),
        ("[permission.p]\nextends = 'x'", 1, "permission", "permissions"),
    ],
)
def test_a_misspelt_protection_stops_the_start(
    place: Place, text: str, line: int, key: str, meant: str
):
    path = place.user(f"{text}\n")
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert raised.value.exit_code == 78
    assert str(raised.value) == (
        f"Error loading config.toml: {path}:{line}: `{key}` is unknown; did you mean `{meant}`?"
        " A key that may protect is not ignored: to start without it, pass -c"
        f" 'allow_unenforced=[\"{key}\"]'"
    )
    config = place.load(overrides=[f'allow_unenforced=["{key}"]'])
    assert any("Ignored" in warning and key in warning for warning in config.warnings)


@pytest.mark.parametrize(
    "text", ["modle = 'x'", "[sand]\nx = 1", "[gatesby]\nx = 1", "hosts = 1"]
)
def test_other_unknown_keys_stop_nothing(place: Place, text: str):
    place.user(f"{text}\n")
    (warning,) = place.load().warnings
    assert warning.startswith("Ignored")


def test_a_key_below_a_table_that_belongs_above_it_is_told_so(place: Place):
    path = place.user('[tools]\nweb_search = true\n\napproval_policy = "never"\n')
    assert place.load().warnings == (
        f"Ignored an unknown setting in {path}: `tools.approval_policy`"
        " (line 4; `approval_policy` belongs above the first [table] of the file).",
    )


def test_thousands_of_unknown_keys_are_read_in_no_time(place: Place):
    place.user("".join(f"{'k' * 9_000}{number} = 1\n" for number in range(300)))
    (warning,) = place.load().warnings
    assert warning.startswith("Ignored 300 unknown settings")


def test_of_many_unknown_keys_the_first_are_named(place: Place):
    path = place.user("".join(f"zq{number}.b = 1\n" for number in range(25)))
    (warning,) = place.load().warnings
    assert warning.startswith(
        f"Ignored 25 unknown settings in {path}: `zq0` (line 1), "
    )
    assert warning.endswith("`zq19` (line 20) and 5 more.")


def test_unknown_keys_are_errors_where_asked_for(place: Place):
    path = place.user("model = 'm'\n[tui]\nanimation = true\n")
    with pytest.raises(ConfigError) as raised:
        place.load(strict=True)
    assert str(raised.value) == (
        f"Error loading config.toml: {path}:3: `tui.animation` is unknown;"
        " did you mean `tui.animations`?"
    )


def test_mistakes_name_file_line_and_key(place: Place):
    path = place.user("# first\n[sandbox_workspace_write]\nnetwork_access = 'yes'\n")
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert str(raised.value) == (
        f"Error loading config.toml: {path}:3: `sandbox_workspace_write.network_access`"
        ' must be a boolean, not `"yes"`'
    )
    with pytest.raises(
        ConfigError, match=r"toml: -c: `model` must be a string, not `5`"
    ):
        place.load(overrides=["model=5"])


def test_a_profile_must_exist(place: Place):
    with pytest.raises(ConfigError) as raised:
        place.load(profile="work")
    assert str(raised.value) == (
        f"profile 'work' was not found: there is no {place.home / 'work.config.toml'}"
    )


@pytest.mark.parametrize("name", ["../x", "", "a/b", "x.config.toml", "a\n"])
def test_a_profile_has_a_plain_name(place: Place, name: str):
    with pytest.raises(ConfigError, match="a prompt needs no option"):
        place.load(profile=name)


def test_old_profiles_are_refused(place: Place):
    path = place.user("model = 'm'\nprofile = 'x'\n")
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert str(raised.value) == (
        f"{path}:2: `profile` is no longer supported; use `--profile x` with"
        f" {place.home / 'x.config.toml'} instead"
    )

    place.user("[profiles.x]\nmodel = 'm'\n")
    with pytest.raises(
        ConfigError, match=r"`--profile x` cannot .* into .*/x\.config\.toml$"
    ):
        place.load(profile="x")
    place.user("", "x.config.toml")
    place.user("[profiles.x]\nmodel = 'm'\n")
    assert place.load().model == "gpt-6.1-sol"
    with pytest.raises(
        ConfigError, match=r"`--profile x` cannot be used while .*toml:1 holds"
    ):
        place.load(profile="x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"model = ", "{path}:1:9: Invalid value"),
        (
            b'a = 1\nmodel = "x\nb = 1',
            "{path}:2:11: the quote is not closed on this line",
        ),
        (b"a = 1\nb 2\n", "{path}:2:3: Expected '=' after a key in a key/value pair"),
        (b"a = [1,\n", "{path}:2:1: Invalid value"),
        (
            b"model = '\xff'",
            "{path} cannot be read: it is not valid UTF-8 (invalid byte at offset 9, in line 1)",
        ),
        (b"a = " + b"[" * 2000, "inside each other"),
        (b"a." * 500 + b"a = 1", "inside each other"),
        # Each would take minutes to be parsed.
        (b"a." * 200_000 + b"a = 1", "inside each other"),
        (b"'a'.\"#\"." * 200_000 + b"a = 1", "inside each other"),
        (b"x = '#'\n[" + b"a ." * 200_000 + b"a]", "inside each other"),
        (b'\\"""\n' * 200_000, "{path}:1:1: Invalid statement"),
        (b'"' + b'\\"' * 400_000, "{path}:1:"),
        (b"a = " + b"9" * 5000, "{path}:1:1: Exceeds the limit"),
    ],
)
def test_a_wrong_file_is_reported_in_one_sentence(
    place: Place, content: bytes, message: str
):
    path = place.home / "config.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert message.format(path=path) in str(raised.value)


def test_a_text_may_have_any_number_of_dots(place: Place):
    dots = "a." * 1000
    place.user(
        f'# {dots}\ninstructions = \'{dots}\'\ndeveloper_instructions = "\\"{dots}"\n'
        f'compact_prompt = """\n"{dots}\\""" {dots}"""\n'
    )
    config = place.load()
    assert config.base_instructions == dots
    assert config.compact_prompt == f'"{dots}""" {dots}'


def test_a_byte_order_mark_is_tolerated(place: Place):
    (place.home / "config.toml").write_bytes(b"\xef\xbb\xbfmodel = 'm'\r\n")
    assert place.load().model == "m"


def test_a_folder_or_a_pipe_in_place_of_the_file_is_an_error(place: Place):
    path = place.home / "config.toml"
    path.mkdir()
    with pytest.raises(ConfigError, match=r"it is a (folder|named pipe)"):
        place.load()
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"it is a (folder|named pipe)"):
        place.load()
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(
        ConfigError, match="cannot be read: it is a link where a file should be"
    ):
        place.load()


def test_no_input_raises_anything_but_a_config_error(place: Place):
    generator = random.Random(3)
    keys = ["model", "tools", "tools.web_search", "projects", 'projects."/x"', "mcp_servers.a", "tui",
            "approval_policy", "profile", "sandbox_mode", "features", "hooks", "unknown", '""', "a.b",
            "shell_environment_policy.set", "project_root_markers", "model_instructions_file",
            "default_permissions", "sandbox_workspace_write.writable_roots", "[x]", "notify"]  # fmt: skip
    values = ["1", "-1", "true", "''", "'x'", "'\\u0000'", "[]", "[1]", "['a/b']", "{}", "{a = 1}",
              "{granular = {rules = true}}", "1979-05-27", "nan", "1e999", "'~'", "'trusted'", "[[{}]]",
              "{command = 'x'}", "", "'read-only'", "'\ud800'", '"\\u0000"']  # fmt: skip

    def text() -> str:
        lines = (
            f"{generator.choice(['', '', '', '[', '[['])}{generator.choice(keys)}"
            f"{generator.choice([' = ', '=', ']', ']]'])}{generator.choice(values)}"
            for _ in range(generator.randrange(4))
        )
        return "\n".join(lines)

    loaded = 0
    for _ in range(400):
        place.trusted(text().replace("\ud800", "") if generator.random() < 0.2 else "")
        place.project(text().replace("\ud800", "\\"))
        place.user(text().replace("\ud800", "é"), "p.config.toml")
        overrides = [text() for _ in range(generator.randrange(30))]
        try:
            place.load(overrides=overrides, profile="p").sandbox_policy()
        except ConfigError:
            continue
        loaded += 1
    assert loaded > 0


def test_a_mistake_in_toml_is_told_with_the_key_and_not_the_value(place: Place):
    path = place.user('model = "a"\nmodel = "secret"\n')
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert f"{path}:2:" in str(raised.value)
    assert str(raised.value).endswith("in `model = …`")
