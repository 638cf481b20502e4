from pathlib import Path

from codex_py.app.user_programs import user_shell


def test_the_users_shell_is_one_that_speaks_sh_and_can_be_run(tmp_path: Path):
    zsh = tmp_path / "zsh"
    zsh.touch(mode=0o755)
    assert user_shell({"SHELL": str(zsh)}) == str(zsh)
    zsh.chmod(0o644)
    for shell in (str(zsh), "zsh", "/usr/bin/fish", "/bin/false", ""):
        assert Path(user_shell({"SHELL": shell})).name in {"bash", "sh", "zsh", "dash"}
        assert user_shell({"SHELL": shell}) != shell
