"""What an allowed command may be: a program that the model cannot change, in a repository that it cannot change.

Also tests `execpolicy/git.py`.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from codex_py.execpolicy.decision import CommandRules, Decision, PrefixRule
from codex_py.execpolicy.place import CommandPlace, is_known_shell
from codex_py.execpolicy.safety import is_known_safe

RULES = CommandRules(
    (
        PrefixRule((("git",),)),
        PrefixRule((("tool",),)),
        PrefixRule((("./tool",),)),
        PrefixRule((("cd", "sudo", "env"),)),
        PrefixRule((("npm",), ("publish",)), Decision.FORBIDDEN),
    )
)


class Disk:
    """A workspace that the model may write, and programs that it may not."""

    def __init__(self, root: Path) -> None:
        self.ws, self.bin, self.venv = root / "ws", root / "bin", root / "ws/.venv/bin"
        for folder in (self.ws, self.bin, self.venv):
            folder.mkdir(parents=True)
        for name in ("git", "tool", "sudo", "env", "bash"):
            self.program(self.bin / name)
        self.repository(self.ws / ".git")

    def program(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def repository(self, path: Path) -> None:
        path.mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")

    def place(
        self, cwd: str = "", path: str = "{bin}", shell: str = "/bin/bash"
    ) -> CommandPlace:
        search_path = path.format(bin=self.bin, venv=self.venv, ws=self.ws)
        return CommandPlace(
            self.ws / cwd, {"PATH": search_path}, (self.ws,), shell=shell
        )

    def allows(
        self, command: str | list[str], place: CommandPlace | None = None
    ) -> bool:
        argv = ["/bin/bash", "-lc", command] if isinstance(command, str) else command
        match = RULES.decide(argv, place or self.place())
        return match is not None and match.decision is Decision.ALLOW


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path.resolve())


def test_a_program_that_the_path_leads_to_is_allowed(disk: Disk) -> None:
    assert disk.allows("tool x && git fetch")
    assert disk.allows(["tool", "x"])
    assert not disk.allows(["missing"])


@pytest.mark.parametrize(
    "path", ["{venv}:{bin}", ":{bin}", ".venv/bin:{bin}", "{ws}/link:{bin}"]
)
def test_a_program_of_the_workspace_is_not(path: str, disk: Disk) -> None:
    (disk.ws / "link").symlink_to(".venv/bin")
    place = disk.place(path=path)
    assert disk.allows("tool x", place)
    for folder in (disk.venv, disk.ws):
        disk.program(folder / "tool")
    assert not disk.allows("tool x", place)
    assert not disk.allows(["tool", "x"], place)
    # Even if it comes to be after the decision, it is not found.
    assert place.safe_environment() == {"PATH": str(disk.bin)}


def test_a_link_out_of_a_folder_of_the_system_into_the_workspace_is_not(
    disk: Disk,
) -> None:
    own = disk.program(disk.ws / "own")
    (disk.bin / "tool").unlink()
    (disk.bin / "tool").symlink_to(own)
    assert not disk.allows("tool x")


def test_a_relative_path_into_the_workspace_is_not(disk: Disk) -> None:
    disk.program(disk.ws / "tool")
    assert not disk.allows("./tool x")
    assert not disk.allows(["./tool"])
    outside = CommandPlace(disk.bin, {"PATH": str(disk.bin)}, (disk.ws,))
    assert disk.allows(["./tool"], outside)


@pytest.mark.parametrize(
    "command", ["sudo ./evil", "env A=1 ./evil", "cd sub && git fetch"]
)
def test_the_program_that_runs_in_the_end_counts(command: str, disk: Disk) -> None:
    disk.program(disk.ws / "evil")
    (disk.bin / "cd").symlink_to("tool")
    assert not disk.allows(command)
    assert disk.allows("sudo tool")


def test_words_that_are_no_path_are_not_allowed(disk: Disk) -> None:
    assert not disk.allows(["tool\0"])


@pytest.mark.parametrize(
    "shell",
    ["./bash", "{ws}/bash", "/bin/../{ws}/bash", "{ws}/link/bash", "{bin}/bash"],
)
def test_the_commands_of_an_unknown_shell_are_not_taken_for_allowed(
    shell: str, disk: Disk
) -> None:
    disk.program(disk.ws / "bash")
    (disk.ws / "link").symlink_to("/bin")
    word = shell.format(ws=disk.ws, bin=disk.bin)
    assert not disk.allows([word, "-lc", "git fetch"])
    assert not is_known_safe([word, "-lc", "ls"], disk.place())
    # It may do what its script says all the same.
    match = RULES.decide([word, "-lc", "npm publish"], disk.place())
    assert match is not None
    assert match.decision is Decision.FORBIDDEN


def test_a_shell_by_its_name_is_the_one_that_the_path_leads_to(disk: Disk) -> None:
    script = ["bash", "-lc", "git fetch"]
    assert disk.allows(script, disk.place(path="/bin:{bin}"))
    assert not disk.allows(script, disk.place(path="{bin}:/bin"))
    disk.program(disk.venv / "bash")
    assert not disk.allows(script, disk.place(path="{venv}:/bin:{bin}"))


def test_the_users_own_shell_is_known_wherever_it_is(disk: Disk) -> None:
    own = str(disk.bin / "bash")
    assert disk.allows([own, "-lc", "git fetch"], disk.place(shell=own))
    written = str(disk.program(disk.ws / "bash"))
    assert not disk.allows([written, "-lc", "git fetch"], disk.place(shell=written))


def test_known_shells_have_absolute_paths() -> None:
    assert is_known_shell("/usr/bin/zsh")
    assert is_known_shell("/opt/x/fish", "/opt/x/fish")
    for path in ("bash", "", "./bash", "/tmp/bash", "/bin/../tmp/bash", "/bin/python3"):
        assert not is_known_shell(path)


@pytest.mark.parametrize(
    "shell",
    ["fish", "/ws/bash", "./zsh-5.9", "bash5", "mksh", "bash-static", "busybox sh"],
)
def test_a_rule_that_forbids_sees_through_whatever_is_called_like_a_shell(
    shell: str,
) -> None:
    match = RULES.decide([*shell.split(), "-c", "npm publish"])
    assert match is not None
    assert match.decision is Decision.FORBIDDEN


def test_variables_lead_an_allowed_program_to_no_code_of_the_model(disk: Disk) -> None:
    ws = disk.ws
    kept = {
        "HOME": str(ws.parent),
        "PWD": str(ws),
        "EDITOR": "vi",
        "PYTHONPATH": "/usr/lib",
        "A": "b",
    }
    code = {
        "PYTHONPATH": f"/usr/lib:{ws}/src", "BASH_ENV": "env.sh", "PERL5LIB": "", "LD_PRELOAD": "./x.so",
        "NODE_OPTIONS": f"--require {ws}/x.js", "JAVA_TOOL_OPTIONS": f"-javaagent:{ws}/x.jar",
        "GIT_SSH_COMMAND": f"{ws}/ssh -v",
    }  # fmt: skip
    for name, value in code.items():
        place = replace(disk.place(), environment={"PATH": str(disk.bin), name: value})
        assert place.safe_environment() == {"PATH": str(disk.bin)}
    place = replace(disk.place(), environment={"PATH": str(disk.bin), **kept})
    assert place.safe_environment() == {"PATH": str(disk.bin), **kept}


def test_nothing_is_allowed_where_the_workspace_holds_the_users_profile(
    disk: Disk,
) -> None:
    home = disk.ws.parent / "home"
    home.mkdir()
    place = replace(
        disk.place(), environment={"PATH": str(disk.bin), "HOME": str(home)}
    )
    assert disk.allows("tool", place)
    (home / ".bash_profile").symlink_to(disk.ws / "profile")
    assert not disk.allows("tool", replace(place))
    assert not disk.allows(
        "tool",
        replace(place, environment={**(place.environment or {}), "HOME": str(disk.ws)}),
    )


@pytest.mark.parametrize(
    "command",
    [
        *("git status", "git fetch origin", "git --no-pager log -p", "git push -u origin main"),
        *("git commit -c HEAD", "git add .", "git log -- nested", "git switch -c x", "git rebase main"),
    ],
)  # fmt: skip
def test_git_is_allowed_in_the_repository_of_the_project(
    command: str, disk: Disk
) -> None:
    (disk.ws / ".git/config").write_text('[remote "origin"]\n', encoding="utf-8")
    assert disk.allows(command)


def test_git_knows_the_remotes_of_a_worktree(disk: Disk) -> None:
    (disk.ws / ".git").rename(disk.bin / "main")
    tree = disk.bin / "main/worktrees/ws"
    tree.mkdir(parents=True)
    (disk.ws / ".git").write_text(f"gitdir: {tree}\n", encoding="utf-8")
    (tree / "commondir").write_text("../..\n", encoding="utf-8")
    assert not disk.allows("git push origin")
    (disk.bin / "main/config").write_text('[remote "origin"]\n', encoding="utf-8")
    assert disk.allows("git push origin")


def test_git_is_not_allowed_where_a_command_can_make_a_repository(disk: Disk) -> None:
    # Also while it is looked for: so it need not be there yet.
    (disk.ws / "sub").mkdir()
    (disk.ws / "out").symlink_to(disk.bin)
    (disk.ws / "here").symlink_to(".")
    for cwd in ("sub", "out", "here", "out/..", "sub/.."):
        assert not disk.allows("git status", disk.place(cwd))
    assert disk.allows("git status", disk.place("."))


@pytest.mark.parametrize("command", ["fetch", "pull", "push", "clone", "ls-remote"])
def test_git_contacts_no_repository_that_a_command_can_make(
    command: str, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(disk.ws.parent))
    (disk.ws / ".git/config").write_text('[remote "origin"]\n', encoding="utf-8")
    for name in ("new", "./new", "../ws/new", "'~/ws/new'"):
        assert not disk.allows(f"git {command} {name} main")
    for name in (
        "origin",
        "--depth 1 origin",
        "https://host/x",
        "git@host:x.git",
        "../bin/x",
    ):
        assert disk.allows(f"git {command} {name}")


def test_a_git_command_does_not_prepare_what_the_next_one_runs(disk: Disk) -> None:
    assert disk.allows("git add -A")
    assert disk.allows("git add -A && tool")
    assert not disk.allows("git add -A && git status")


def test_a_pipe_in_place_of_the_index_is_not_waited_for(disk: Disk) -> None:
    os.mkfifo(disk.ws / ".git/index")
    assert not disk.allows("git status")


@pytest.mark.parametrize(
    "command",
    [
        *("git fetch --upload-pack='touch x;' .", "git fetch --upload-p=x", "git push --receive-pack x"),
        *("git push --exec=x", "git -c core.sshCommand=x fetch", "git --exec-path=x fetch", "git -C x fetch"),
        *("git --git-dir=x fetch", "git clone -u x y", "git clone -c a=b y", "git clone --config a=b y"),
        *("git clone --template=x y", "git rebase -x ls", "git rebase --exec ls", "git grep -Ols x"),
        *("git log --output=/etc/x", "git bisect run x", "git submodule foreach x", "git difftool -x ls"),
        *("git fetch ext::ls", "git fetch file:///x", "git fetch nested", "git push ./nested/ main"),
        *("git push --repo=nested", "git fetch bare", "git config core.pager x", "git remote add x y"),
        *("git archive --remote=new HEAD", "git fetch --recurse-submodules"),
        *("git log -p --submodule=diff", "git diff --subm=diff a b"),
    ],
)  # fmt: skip
def test_git_is_not_allowed_to_run_what_its_arguments_say(
    command: str, disk: Disk
) -> None:
    disk.repository(disk.ws / "nested/.git")
    disk.repository(disk.ws / "bare.git")
    assert not disk.allows(command)


def test_a_rule_that_names_the_option_allows_it(disk: Disk) -> None:
    words = ("git", "-c", "core.pager=cat", "log")
    rules = CommandRules((PrefixRule(tuple((word,) for word in words)),))
    assert rules.decide(words, disk.place()) is not None
    assert rules.decide([*words, "--output=x"], disk.place()) is None
    words = ("git", "push", "./new")
    rules = CommandRules((PrefixRule(tuple((word,) for word in words)),))
    assert rules.decide([*words, "main"], disk.place()) is not None


def test_git_is_not_allowed_in_a_repository_that_a_command_has_made(disk: Disk) -> None:
    disk.repository(disk.ws / "nested/.git")
    (disk.ws / "nested/deep").mkdir()
    (disk.ws / "pointer").mkdir()
    (disk.ws / "pointer/.git").write_text("gitdir: ../nested/.git", encoding="utf-8")
    disk.repository(disk.ws / "bare")
    (disk.ws / "link").symlink_to("nested")
    for cwd in ("nested", "nested/deep", "pointer", "bare", "link/deep"):
        assert not disk.allows("git fetch", disk.place(cwd))


def test_an_empty_folder_in_place_of_the_repository_is_none(disk: Disk) -> None:
    (disk.ws / ".git/HEAD").unlink()
    assert disk.allows("git fetch")
    (disk.ws / "HEAD").touch()
    assert not disk.allows("git fetch")


def test_git_is_not_allowed_where_it_enters_submodules(disk: Disk) -> None:
    git = ["git", "-C", str(disk.ws)]
    subprocess.run(["git", "init", "-q", str(disk.ws)], check=True)
    (disk.ws / "file").touch()
    subprocess.run([*git, "add", "file"], check=True)
    assert disk.allows("git status")
    link = "160000,f2d3ce0bd0000000000000000000000000000001,sub"
    subprocess.run([*git, "update-index", "--add", "--cacheinfo", link], check=True)
    assert not disk.allows("git status")
    # The index itself then has no entries of its own.
    subprocess.run([*git, "update-index", "--split-index"], check=True)
    assert not disk.allows("git status")


def test_a_repository_that_is_a_link_may_be_another_one_soon(disk: Disk) -> None:
    (disk.ws / ".git").rename(disk.ws / "real")
    (disk.ws / ".git").symlink_to("real")
    assert not disk.allows("git fetch")


def test_a_repository_around_the_workspace_is_nobodys_to_change(disk: Disk) -> None:
    inner = disk.ws / "inner"
    inner.mkdir()
    place = CommandPlace(inner, {"PATH": str(disk.bin)}, (inner,), shell="/bin/bash")
    assert disk.allows("git fetch", place)
    # Unless the folder around it is writable too, where only the `.git` of the workspace is held.
    wider = replace(place, temporary=(disk.ws,))
    assert not disk.allows("git fetch", wider)


def test_git_agrees_about_the_repository_that_it_finds(tmp_path: Path) -> None:
    bare = tmp_path.resolve() / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    (bare / ".git").mkdir()
    found = subprocess.run(
        ["git", "rev-parse", "--absolute-git-dir"],
        cwd=bare, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert found.stdout.strip() == str(bare)
    place = CommandPlace(bare, None, (bare,))
    assert RULES.decide(["git", "fetch"], place) is None
