"""The prefixes that are offered where the model proposes none, and the ways to smuggle a program in."""

from dataclasses import replace
from pathlib import Path

import pytest

from codex_py.execpolicy.decision import CommandRules
from codex_py.execpolicy.place import CommandPlace
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.tools.shell.permission import Ask, CommandCall, Run, allowing, decide

ON_REQUEST = ApprovalPolicy.ON_REQUEST


class Disk:
    def __init__(self, root: Path) -> None:
        self.ws, self.bin = root / "ws", root / "bin"
        (self.ws / ".git").mkdir(parents=True)
        (self.ws / ".git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        (self.ws / ".git/config").write_text('[remote "origin"]\n', encoding="utf-8")
        (self.ws / "evil").mkdir()
        self.bin.mkdir()
        for name in (
            "bash",
            "docker",
            "gh",
            "git",
            "pip",
            "pip3",
            "ping",
            "npm",
            "python3",
            "tail",
        ):
            (self.bin / name).touch(0o755)
        (self.ws / "evil/pip").touch(0o755)
        variables = {"PATH": str(self.bin), "HOME": str(root)}
        self.place = CommandPlace(self.ws, variables, (self.ws,), shell="/bin/bash")

    def call(self, script: str, prefix: tuple[str, ...] = ()) -> CommandCall:
        argv = ("/bin/bash", "-lc", script)
        return CommandCall(argv, self.ws, escalated=True, prefix_rule=prefix)

    def decide(self, call: CommandCall, rules: CommandRules | None = None) -> Run | Ask:
        place = replace(self.place, cwd=call.cwd)
        return decide(
            call, ON_REQUEST, "workspace-write", rules or CommandRules(), (), place
        )

    def offered(self, call: CommandCall | str) -> str | None:
        found = self.decide(self.call(call) if isinstance(call, str) else call)
        assert isinstance(found, Ask)
        return None if found.request.prefix is None else " ".join(found.request.prefix)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path.resolve())


@pytest.mark.parametrize(
    ("script", "prefix"),
    [
        ("git push -u origin main", "git push"),
        ("git commit -m 'a b; c'", "git commit"),
        ("'git' \"push\"", "git push"),
        ("pip install requests", "pip install"),
        ("pip3 install -U 'requests[socks]>=2,<3' six==1.17.0", "pip3 install"),
        ("pip index versions six", "pip index versions"),
        ("gh pr view 12 --json title", "gh pr view"),
        ("docker ps -a", "docker ps"),
        ("ping -c 1 host", "ping"),
    ],
)
def test_a_known_prefix_is_offered(script: str, prefix: str, disk: Disk) -> None:
    assert disk.offered(script) == prefix


@pytest.mark.parametrize(
    "script",
    [
        # What runs something else by its nature.
        *("python3 x.py", "python3 -m pip install x", "sh -c 'git push'", "env git push", "sudo git push"),
        *("xargs git push", "find . -exec git push ;", "ssh host git push", "npm run x", "npm install"),
        *("npm exec x", "npx x", "make", "cargo build", "cargo --config x fetch", "uv pip install x"),
        *("nohup git push", "time git push", "command git push", "eval git push", "curl -o x y"),
        *("docker run x", "docker exec x y", "docker compose ps", "gh alias set x y", "gh api x"),
        # Options before the subcommand, and those that run or read something.
        *("git -c core.pager=x log", "git -C evil push", "git --exec-path=x push", "git -p log"),
        *("docker -H ssh://x ps", "docker --config x ps", "gh -R x pr view", "pip --python ./x install y"),
        *("git push --receive-pack=x", "git fetch --upload-pa=x", "git diff --ext-diff", "git push ext::x"),
        *("git log --output=x", "git ls-remote -u x", "git push ./evil", "git clone x", "git rebase -x y"),
        # What deletes, and aliases.
        *("git reset --hard", "git clean -fd", "git pull", "git rm x", "git co x"),
        *("git config alias.push !x", "g push"),
        # pip takes files, folders, other indexes, and another interpreter.
        *("pip install .", "pip install ./evil", "pip install evil/", "pip install -e evil", "pip install x.whl"),
        *("pip install -r x", "pip install -rx", "pip install x-1.tar.gz", "pip install X.ZIP", "pip install -i u x"),
        *("pip install git+https://x", "pip install 'x @ file:///y'", "pip install --python=./x y"),
        *("pip list --python ./x", "pip list --pyth=./x", "pip install --index-url u x", "pip install -- -e x"),
        *("pip install --log /etc/x y", "pip install -t /etc x", "pip install --config-settings=a=b x"),
        # Other programs of the same name.
        *("evil/pip install x", "/usr/bin/git push", "../ws/evil/pip install x", "/bin/bash -lc 'git push'"),
        *("gi\N{LATIN SMALL LETTER DOTLESS I}t push", "g\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}t push"),
        *("git pu\N{CYRILLIC SMALL LETTER ES}h", "git\N{NO-BREAK SPACE}push", "git\N{ZERO WIDTH SPACE} push"),
        *("GIT push", "git PUSH", "git 'push x'", "'git push'", "git pushx", "git", "pip", "git push\x1b[1A"),
        # More than one plain command.
        *("A=1 git push", "PATH=. git push", "GIT_SSH_COMMAND=x git push", "git push | tail", "git push || ./x"),
        *("git push; ./x", "git push & ./x", "git push\n./x", "git push\r./x", "git push && git fetch"),
        *("git push > x", "git push 2>&1", "git push < x", "git commit -F - <<A\n$(x)\nA", "git commit <<<x"),
        *("git push $(x)", "git push `x`", "git push $X", "git push <(x)", "git pus?", "git {push,x}", "~/git push"),
        *("if git push; then x; fi", "(git push)", "{ git push; }", "! git push", "f() { x; }; git push"),
        *("alias git=x; git push", "cd evil && git push", "git() { x; }\ngit push", "\\\ngit push #\n./x"),
    ],
)  # fmt: skip
def test_nothing_is_offered_that_could_run_something_else(
    script: str, disk: Disk
) -> None:
    assert disk.offered(script) is None


@pytest.mark.parametrize(
    "argv",
    [
        ("git push",),
        ("git", "push\0"),
        ("git", "-cx=y", "push"),
        ("bash", "git", "push"),
        ("",),
    ],
)
def test_nothing_is_offered_for_an_odd_argv(argv: tuple[str, ...], disk: Disk) -> None:
    assert disk.offered(CommandCall(argv, disk.ws, escalated=True)) is None


def test_an_accepted_prefix_does_not_let_the_next_call_run_something_else(
    disk: Disk,
) -> None:
    rules = allowing(allowing(CommandRules(), ("pip", "install")), ("git", "push"))

    def runs(script: str) -> bool:
        return isinstance(disk.decide(disk.call(script), rules), Run)

    assert runs("pip install six && git push origin")
    for script in (
        "pip install ./evil",
        "pip install -e .",
        "git push ./evil",
        "git -c a=b push",
    ):
        assert not runs(script)
    # It is the user's own words that count.
    rules = allowing(CommandRules(), ("pip", "install", "-e", "."))
    assert runs("pip install -e .")


def test_no_program_of_the_workspace_is_offered(disk: Disk) -> None:
    variables = {"PATH": f"{disk.ws}/evil:{disk.bin}"}
    disk.place = replace(disk.place, environment=variables)
    assert disk.offered("pip install six") is None
    assert disk.offered("git push") == "git push"


@pytest.mark.parametrize(
    "where", ["ws/.git/config", ".gitconfig", ".config/git/config"]
)
@pytest.mark.parametrize("hooks", [".husky", '".husky" # ours', "~/ws/hooks"])
def test_hooks_in_the_workspace_hold_git_back(
    where: str, hooks: str, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(disk.ws.parent))
    config = disk.ws.parent / where
    config.parent.mkdir(parents=True, exist_ok=True)
    for line, prefix in (
        (f"[core]\n\thooksPath = {hooks}\n", None),
        ("hooksPath=/etc/x", "git push"),
    ):
        config.write_text(f'[remote "origin"]\n{line}', encoding="utf-8")
        assert disk.offered("git push origin") == prefix


@pytest.mark.parametrize(
    ("link", "target", "is_held"),
    [
        ("hooks", "ws/scripts", True),
        ("hooks", "ws/not-there", True),
        ("hooks", "ws", True),
        ("hooks", "elsewhere", False),
        ("hooks/pre-push", "ws/scripts/pre-push", True),
        ("hooks/pre-push", "ws/not-there", True),
        ("hooks/pre-push", "elsewhere/pre-push", False),
    ],
)
def test_hooks_that_are_links_into_the_workspace_hold_git_back(
    link: str, target: str, disk: Disk, *, is_held: bool
) -> None:
    (disk.ws / "scripts").mkdir()
    place = disk.ws / ".git" / link
    place.parent.mkdir(exist_ok=True)
    assert disk.offered("git push origin") == "git push"
    place.symlink_to(disk.ws.parent / target)
    assert disk.offered("git push origin") == (None if is_held else "git push")


def test_the_words_of_the_model_come_first_if_they_are_narrow(disk: Disk) -> None:
    assert (
        disk.offered(disk.call("git push origin", ("git", "push", "origin")))
        == "git push origin"
    )
    assert disk.offered(disk.call("git push origin", ("git",))) == "git push"
    assert (
        disk.offered(disk.call(f"npm run {'x' * 100}", ("npm", "run", "x" * 100)))
        is None
    )


def test_nothing_is_offered_for_a_command_that_stays_in_the_sandbox(disk: Disk) -> None:
    call = replace(disk.call("git push"), escalated=False)
    found = decide(
        call,
        ApprovalPolicy.UNTRUSTED,
        "workspace-write",
        CommandRules(),
        (),
        disk.place,
    )
    assert isinstance(found, Ask)
    assert found.request.prefix is None
