import os
from pathlib import Path

import pytest

from codex_py.config.config import Config
from codex_py.config.declared.features import Features
from codex_py.config.declared.settings import Settings
from codex_py.config.declared.tools import WebSearch
from codex_py.config.environment import ShellEnvironmentPolicy
from codex_py.config.limits import Budget
from codex_py.config.project_trust import Untrusted
from codex_py.config.requirements import Requirements
from codex_py.errors import ConfigError
from codex_py.protocol.approval import (
    ApprovalPolicy,
    GranularPolicy,
    SandboxLimits,
    SandboxPolicy,
)
from tests.config.conftest import Place


def test_without_any_file_everything_has_its_default(place: Place):
    loaded = place.load()
    assert loaded == Config(
        layers=loaded.layers,
        home=place.home,
        cwd=place.cwd,
        project_root=place.root,
        inside_git=True,
        trust=None,
        project_trust=Untrusted(()),
        model="gpt-6.1-sol",
        model_provider="openai",
        model_providers={},
        model_context_window=None,
        model_max_output_tokens=None,
        model_auto_compact_token_limit=None,
        model_reasoning_effort=None,
        model_fallbacks=(),
        base_instructions=None,
        developer_instructions=None,
        compact_prompt=None,
        project_doc_max_bytes=32768,
        approval_policy=None,
        sandbox_mode=None,
        sandbox_workspace_write=SandboxPolicy(mode="workspace-write"),
        sandbox_limits=SandboxLimits(),
        shell_environment=ShellEnvironmentPolicy(),
        budget=Budget(
            max_turns=None,
            max_tokens=None,
            max_cost=None,
            max_time=None,
            rollout=None,
            loop_guard=True,
        ),
        web_search="cached",
        mcp_servers={},
        plugins=(),
        notify=None,
        features=Features({}),
        settings=Settings({}),
        warnings=(),
        unenforced=(),
        requirements=Requirements(),
    )


def test_instructions_come_from_a_file_before_the_key(place: Place):
    place.user("instructions = 'short'\n")
    assert place.load().base_instructions == "short"
    place.user("instructions = 'short'\nmodel_instructions_file = 'base.md'\n")
    place.user("from the file\n", "base.md")
    assert place.load().base_instructions == "from the file\n"


@pytest.mark.parametrize(
    "mode", [None, "workspace-write", "read-only", "danger-full-access"]
)
def test_a_writable_root_that_is_not_there_is_told_and_not_made(
    place: Place, mode: str | None
):
    (place.home / "there").mkdir()
    missing = place.home / "missing"
    # No file system has so long a name.
    impossible = place.home / ("n" * 300)
    roots = [str(each) for each in (place.home / "there", missing, impossible)]
    chosen = "" if mode is None else f"sandbox_mode = '{mode}'\n"
    place.user(f"{chosen}[sandbox_workspace_write]\nwritable_roots = {roots}\n")
    warnings = place.load().warnings
    told = [
        f"The writable root {root} does not exist, and commands cannot make it."
        for root in (missing, impossible)
    ]
    assert list(warnings) == (told if mode in {None, "workspace-write"} else [])
    assert not missing.exists()


def test_a_path_has_no_nul(place: Place):
    place.user('[sandbox_workspace_write]\nwritable_roots = ["/a\\u0000b"]\n')
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert "`sandbox_workspace_write.writable_roots" in str(raised.value)


def test_a_named_file_must_be_there(place: Place):
    place.user("model_instructions_file = 'none.md'\n")
    with pytest.raises(ConfigError) as raised:
        place.load()
    assert str(raised.value) == (
        f"`model_instructions_file` names {place.home / 'none.md'}, which does not exist"
    )


def test_the_sandbox_is_read_only_until_the_project_is_trusted(place: Place):
    assert place.load().sandbox_policy() == SandboxPolicy()
    place.trusted()
    assert place.load().sandbox_policy() == SandboxPolicy(
        mode="workspace-write", writable_roots=(place.cwd,)
    )
    assert (
        place.load(flags={"sandbox_mode": "read-only"}).sandbox_policy()
        == SandboxPolicy()
    )


def test_workspace_write_takes_its_settings_and_added_folders(place: Place):
    place.user(
        "sandbox_mode = 'workspace-write'\n[sandbox_workspace_write]\nwritable_roots = ['/w']\n"
        "network_access = true\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    )
    policy = place.load().sandbox_policy([Path("../sub/more"), Path("/w"), Path("/x")])
    assert policy == SandboxPolicy(
        mode="workspace-write",
        writable_roots=(place.cwd, Path("/w"), place.cwd / "more", Path("/x")),
        network_access=True,
        exclude_slash_tmp=True,
        exclude_tmpdir_env_var=True,
    )


def test_limits_of_commands_are_configured_and_are_more_than_nothing(place: Place):
    place.user("[sandbox_limits]\nmax_processes = 100\nmax_memory_mb = 512\n")
    assert place.load().sandbox_limits == SandboxLimits(
        max_processes=100, max_memory_mb=512
    )
    with pytest.raises(
        ConfigError, match="max_open_files` must be an integer of more than 0"
    ):
        place.load(overrides=["sandbox_limits.max_open_files=0"])
    with pytest.raises(
        ConfigError, match="max_processes` must be an integer of more than 0"
    ):
        place.load(overrides=["sandbox_limits.max_processes=-1"])


def test_full_access_includes_the_network(place: Place):
    config = place.load(overrides=["sandbox_mode=danger-full-access"])
    assert config.sandbox_policy() == SandboxPolicy(
        mode="danger-full-access", network_access=True
    )


def test_permission_profiles_stand_for_sandbox_modes(place: Place):
    place.trusted()
    config = place.load(overrides=["default_permissions=:workspace"])
    assert (config.sandbox_mode, config.warnings) == ("workspace-write", ())


def test_every_approval_policy_is_accepted(place: Place):
    for policy in ApprovalPolicy:
        assert (
            place.load(overrides=[f"approval_policy={policy}"]).approval_policy
            is policy
        )


def test_a_granular_policy_says_what_may_be_asked_about(place: Place):
    place.user(
        """
        [approval_policy.granular]
        sandbox_approval = true
        rules = false
        mcp_elicitations = true
        surprises = true
        """
    )
    config = place.load()
    assert config.approval_policy == GranularPolicy(
        sandbox_approval=True, rules=False, mcp_elicitations=True
    )
    assert "approval_policy.granular.surprises" in config.warnings[0]
    # A flag, such as the `never` of a run without a user, takes the place of the whole table.
    flags = {"approval_policy": "never"}
    assert place.load(flags=flags).approval_policy is ApprovalPolicy.NEVER


@pytest.mark.parametrize("value", ["{}", "{granular={rules=false}}"])
def test_a_granular_policy_is_not_left_to_guess(place: Place, value: str):
    with pytest.raises(
        ConfigError, match=r"`approval_policy\.granular` needs `sandbox_approval`"
    ):
        place.load(overrides=[f"approval_policy={value}"])


def test_web_search_has_a_mode_and_options(place: Place):
    assert place.load(overrides=["tools.web_search=false"]).web_search == "disabled"
    assert place.load(overrides=["tools.web_search=true"]).web_search == "cached"
    config = place.load(
        overrides=["web_search=live", "tools.web_search={context_size='low'}"]
    )
    assert config.web_search == "live"
    assert config.settings.tools.web_search == WebSearch({"context_size": "low"})


def test_trust_is_found_by_any_path_that_leads_to_the_folder(
    place: Place, tmp_path: Path
):
    link = tmp_path / "link"
    link.symlink_to(place.root)
    place.user(f"[projects.'{link}/']\ntrust_level = 'trusted'\n")
    assert place.load().trust == "trusted"
    place.user(
        f"[projects.'{place.root}']\ntrust_level = 'trusted'\n"
        f"[projects.'{place.cwd}']\ntrust_level = 'untrusted'\n"
    )
    assert place.load().trust == "untrusted"


def test_a_linked_worktree_shares_the_trust_of_its_repository(
    place: Place, tmp_path: Path
):
    place.trusted()
    worktree = tmp_path / "elsewhere"
    git_dir = place.root / ".git" / "worktrees" / "elsewhere"
    worktree.mkdir()
    git_dir.mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {git_dir}\n", encoding="utf-8")
    place.cwd = worktree
    assert place.load().trust is None, "a checkout alone cannot claim to be a worktree"
    for pointer in (f"{worktree}/.git", os.path.relpath(worktree / ".git", git_dir)):
        (git_dir / "gitdir").write_text(f"{pointer}\n", encoding="utf-8")
        assert place.load().trust == "trusted"
    (git_dir / "gitdir").unlink()
    os.mkfifo(git_dir / "gitdir")
    assert place.load().trust is None, "nothing waits for a named pipe"


def test_instructions_of_a_project_do_not_lead_out_of_it(place: Place):
    place.trusted()
    path = place.project("model_instructions_file = 'base.md'\n")
    (path.parent / "base.md").symlink_to(place.user("secret", "secret"))
    with pytest.raises(
        ConfigError, match=r"base\.md cannot be read: it is a link that leads out"
    ):
        place.load()


def test_instructions_of_the_user_may_be_a_link(place: Place, tmp_path: Path):
    (tmp_path / "dotfiles.md").write_text("mine", encoding="utf-8")
    (place.home / "base.md").symlink_to(tmp_path / "dotfiles.md")
    place.user("model_instructions_file = 'base.md'\n")
    assert place.load().base_instructions == "mine"


def test_a_setting_decides_about_ambiguous_patches(place: Place):
    assert place.load().settings.patch.ambiguous == "first"
    refusing = place.load(overrides=["patch.ambiguous=refuse"])
    assert refusing.settings.patch.ambiguous == "refuse"
    with pytest.raises(ConfigError, match=r"patch\.ambiguous"):
        place.load(overrides=["patch.ambiguous=ask"])
