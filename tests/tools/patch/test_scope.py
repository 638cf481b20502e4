from pathlib import Path

from codex_py.protocol.approval import SandboxPolicy
from codex_py.tools.patch.scope import writable_by
from tests.support.tool_context import tool_context


def test_the_innermost_of_roots_and_protected_paths_decides(tmp_path: Path) -> None:
    home, tree = tmp_path / "home", tmp_path / "home" / "worktrees" / "0a1b" / "repo"
    (tree / ".git").mkdir(parents=True)
    policy = SandboxPolicy(
        "workspace-write",
        (tmp_path, tree),
        exclude_slash_tmp=True,
        exclude_tmpdir_env_var=True,
    )
    writable = writable_by(tool_context(tree, lambda _: None, sandbox=policy), home)
    assert writable is not None
    allowed = [tmp_path / "a", tree / "a", tree / "sub" / "a"]
    refused = [
        home / "a",
        home / "worktrees" / "a",
        tree / ".git" / "a",
        tmp_path.parent / "a",
    ]
    assert all(writable(str(path)) for path in allowed)
    assert not any(writable(str(path)) for path in refused)
