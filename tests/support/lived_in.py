"""Two worlds that a journey runs in: an empty home with a clean repository, and those of somebody who has worked for
years.

In the second are other agents' folders, hooks that rewrite and refuse, a gateway in the environment, an activated
virtual environment with programs of its own, and a repository with a submodule, a repository inside, changes of every
kind, odd modes and odd names. Both are built once and copied.
"""

import json
import os
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_py.config.config import load_config
from codex_py.config.hooks import find_hooks, trust
from tests.support.program import Outcome, Workplace, environment, jsonl, run_codex_py
from tests.support.server import ScriptedServer

_PATH = os.environ["PATH"]
"""Of whoever runs the tests, also while one of them has another."""
_PROGRAMS = (
    "bash",
    "bwrap",
    "git",
    "node",
    "python",
    "python3",
    "rg",
    "sh",
    "sleep",
    "uname",
)
"""Names of programs that codex-py, or what it starts, may look up on `PATH`."""
_GIT_HOOKS = (
    "pre-commit",
    "post-checkout",
    "post-index-change",
    "reference-transaction",
)

_FORMATTER = r"""#!/bin/sh
# Formats what was patched, as black does: blanks at the ends of lines go.
cat >>"$MARKS/formatter"
for file in ./*.py; do sed -i 's/[[:blank:]]*$//' "$file"; done
"""
_GUARD = r"""#!/bin/sh
# No push without the user.
if grep -q 'git push'; then echo 'not without me' >&2; exit 2; fi
"""
_HOOKS = {
    "PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "~/bin/guard"}]}
    ],
    "PostToolUse": [
        {
            "matcher": "apply_patch",
            "hooks": [{"type": "command", "command": "~/bin/format", "timeout": 20}],
        }
    ],
}
_CLAUDE_SETTINGS = {
    "permissions": {"allow": ["Bash(ls:*)"], "deny": ["Read(./.env)"]},
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [{"type": "command", "command": "~/bin/guard"}],
            }
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "cat >/dev/null"}]}],
    },
}


def _skill(name: str) -> str:
    return f"---\nname: {name}\ndescription: How we {name} here.\n---\nThink before you {name}.\n"


_HOME = {
    ".bash_profile": "export PROFILE_WAS_READ=1\n",
    ".gitconfig": "[user]\n\tname = Ada\n\temail = ada@example.com\n[color]\n\tui = always\n"
    "[diff]\n\tnoprefix = true\n\texternal = {lookalikes}/git\n\trenames = copies\n"
    "[core]\n\texcludesFile = ~/.gitignore\n"
    "\tpager = {lookalikes}/node\n\teditor = {lookalikes}/node\n\tquotePath ="
    " true\n[status]\n\tshowUntrackedFiles = no\n"
    "[pull]\n\trebase = true\n[commit]\n\tgpgsign = true\n[gpg]\n\tprogram = {lookalikes}/node\n",
    ".gitignore": "*.swp\n.DS_Store\n",
    ".codex/AGENTS.md": "Answer in short sentences.\n",
    ".codex/agents/tester.toml": 'name = "tester"\ndescription = "Tests."\ndeveloper_instructions = "Test it."\n',
    ".codex/auth.json": '{"OPENAI_API_KEY": null, "tokens": {"access_token": "a.b.c", "refresh_token": "r"}}',
    ".codex/codex-py/config.toml": "hooks.claude = true\n",
    ".codex/history.jsonl": '{"session_id":"01","ts":1700000000,"text":"an old prompt"}\n',
    ".codex/hooks.json": json.dumps({"hooks": _HOOKS}),
    ".codex/prompts/fix.md": "---\ndescription: Fix it\n---\nFix $ARGUMENTS\n",
    ".codex/rules/default.rules": 'prefix_rule(pattern=["git", "status"], decision="allow")\n',
    ".codex/skills/release/SKILL.md": _skill("release"),
    ".codex/version.json": '{"latest_version": "0.169.0"}',
    ".claude.json": '{"numStartups": 900, "mcpServers": {}}',
    ".claude/CLAUDE.md": "Never mention this.\n",
    ".claude/commands/ship.md": "Ship $ARGUMENTS\n",
    ".claude/settings.json": json.dumps(_CLAUDE_SETTINGS),
    ".claude/skills/review/SKILL.md": _skill("review"),
    ".agents/skills/measure/SKILL.md": _skill("measure"),
}
_ISOLATED = (
    "---\nname: builder\ndescription: Builds.\nisolation: worktree\n---\nBuild it.\n"
)
_COMMITTED = {
    "notes.txt": "one\ntwo\nthree\n",
    "code.py": "ONE = 1\n",
    "AGENTS.md": "Tests are in tests/.\n",
}
_PROJECT = {
    ".agents/skills/deploy/SKILL.md": _skill("deploy"),
    ".claude/agents/builder.md": _ISOLATED,
    ".claude/settings.json": '{"permissions": {}}',
    ".codex/config.toml": 'model_reasoning_effort = "low"\n',
    ".gitattributes": "*.txt text\n*.bin binary\n",
    ".gitignore": "build/\n.venv/\n*.log\n.env\n",
    "CLAUDE.md": "@AGENTS.md\n",
    "binary.bin": "\0\1\2",
    "deleted.txt": "to be deleted\n",
    "renamed.txt": "to be renamed\n" * 9,
    "staged.txt": "as committed\n",
    "hidden.txt": "as committed\n",
    "src/with space/ünï.txt": "Unicode\n",
    "src/-dash": "a dash\n",
    "src/notes.txt": "a note\n",
    "src/run.sh": "#!/bin/sh\necho run\n",
    "src/private.key": "mode 0600\n",
    "src/new\nline.txt": "a newline\n",
}


@dataclass(frozen=True)
class World:
    """A place to work in, and all that surrounds it."""

    place: Workplace
    variables: Mapping[str, str]
    """On top of the bare environment."""
    marks: Path
    """What was run that notes it, by name."""
    is_lived_in: bool
    confined: Sequence[str] = ()
    """What the program is started with, so that a sandbox backend is the first that works."""

    @property
    def cwd(self) -> Path:
        return self.place.cwd

    @property
    def home(self) -> Path:
        """`HOME`; `CODEX_HOME` is in it."""
        return self.place.home.parent

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.place.home, self.variables)

    def formatted(self, text: str) -> str:
        """What becomes of a patched Python file here."""
        if not self.is_lived_in:
            return text
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def configure(self, server: ScriptedServer, **provider: Any) -> None:
        """Have the scripted server as the provider; what else is configured stays."""
        keys: dict[str, Any] = {
            "request_max_retries": 0,
            "stream_max_retries": 0,
            **provider,
        }
        self.write_config(server.config_toml(**keys))

    def write_config(self, text: str) -> None:
        if self.is_lived_in:
            # Where the worlds are is a temporary folder, where much is allowed that is not elsewhere.
            text = (
                'approval_policy = "on-request"\nhide_agent_reasoning = true\n'
                + text
                + "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
                + f'[projects.{json.dumps(str(self.cwd))}]\ntrust_level = "trusted"\n'
                + "[tui]\nnotifications = true\n"
            )
        (self.place.home / "config.toml").write_text(text, encoding="utf-8")
        self.trust_hooks()

    def trust_hooks(self) -> None:
        """As somebody who has reviewed them."""
        if hooks := find_hooks(
            load_config(cwd=self.cwd, environment=self.environment), self.environment
        ).found:
            trust(self.place.home, hooks)
        (self.marks / "config.toml").write_bytes(
            (self.place.home / "config.toml").read_bytes()
        )

    def config_is_unchanged(self) -> bool:
        written, is_there = (
            self.marks / "config.toml",
            (self.place.home / "config.toml").exists(),
        )
        if not written.exists():
            return not is_there
        return (
            is_there
            and (self.place.home / "config.toml").read_bytes() == written.read_bytes()
        )

    def run(
        self,
        *args: str,
        stdin: bytes = b"",
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
        real: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """The program with these arguments, to its end. If it is `real`, its interpreter starts with all variables."""
        return run_codex_py(
            args,
            self.place.home,
            cwd or self.cwd,
            {**self.variables, **(variables or {})},
            stdin,
            confined=self.confined,
            real=real,
        )

    def exec(
        self, *args: str, variables: Mapping[str, str] | None = None, real: bool = False
    ) -> Outcome:
        """`exec --json` that may write to the folder."""
        words = ("exec", "--json", "-s", "workspace-write", *args)
        done = self.run(*words, variables=variables, real=real)
        return Outcome(done.returncode, jsonl(done.stdout), done.stderr.decode())

    def ran(self, name: str) -> str:
        """What was noted under a name."""
        path = self.marks / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def lookalikes_that_ran(self) -> list[str]:
        return sorted(path.name for path in self.marks.glob("lookalike-*"))


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and contents of everything below, `.git` of repositories aside; the target of a link for its contents."""
    found: dict[str, tuple[int, bytes]] = {}
    for root, folders, files in os.walk(folder):
        if ".git" in folders:
            folders.remove(".git")
        for name in (*folders, *files):
            path = Path(root, name)
            mode = path.lstat().st_mode
            contents = b""
            if stat.S_ISLNK(mode):
                contents = os.fsencode(path.readlink())
            elif stat.S_ISREG(mode):
                contents = path.read_bytes()
            found[str(path.relative_to(folder))] = (mode, contents)
    return found


def git_state(cwd: Path) -> str:
    """What git says of a repository: HEAD, refs, stashes, and the state of every file, ignored ones too."""
    commands = (
        ["rev-parse", "HEAD"],
        ["for-each-ref"],
        ["stash", "list"],
        ["ls-files", "--stage", "-v"],
        [
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--ignored",
            "--untracked-files=all",
        ],
        ["submodule", "status"],
    )
    return "\n".join(git(cwd, *words) for words in commands)


def git(cwd: Path, *words: str) -> str:
    """Run git as nobody in particular, and without refreshing the index."""
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    done = subprocess.run(
        [
            "git",
            "--no-optional-locks",
            *author,
            "-c",
            "protocol.file.allow=always",
            *words,
        ],
        cwd=cwd,
        env={
            "PATH": _PATH,
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
        },
        capture_output=True,
        check=True,
    )
    return done.stdout.decode(errors="surrogateescape")


def build_empty(root: Path) -> None:
    """A home without anything but `.codex`, and a repository with one commit."""
    (root / "user" / ".codex").mkdir(parents=True)
    (root / "marks").mkdir()
    (root / "tmp").mkdir()
    cwd = _cwd(root)
    cwd.mkdir(parents=True)
    _write(cwd, _COMMITTED)
    git(cwd, "init", "-q", "-b", "main")
    git(cwd, "add", "-A")
    git(cwd, "commit", "-qm", "first")


def build_lived_in(root: Path) -> None:
    build_empty(root)
    home, cwd = root / "user", _cwd(root)
    _write(home, _HOME)
    (home / ".claude" / "agents").mkdir()
    for name, text in {"format": _FORMATTER, "guard": _GUARD}.items():
        _program(home / "bin" / name, text)
    _write(home / "lib", {"startup.py": _marking_module("startup")})
    _build_repository(cwd)
    for name in _PROGRAMS:
        # It notes that it ran, and does nothing of what is asked.
        _program(
            cwd / ".venv/bin" / name,
            f'#!/bin/sh\n: >>"$MARKS/lookalike-{name}"\nexit 1\n',
        )
    _write(
        cwd,
        {
            f"build/lib/{name}.py": _marking_module(name)
            for name in ("httpx", "pydantic")
        },
    )


def _build_repository(cwd: Path) -> None:
    for name in ("vendored", "inner"):
        path = cwd / name
        path.mkdir()
        _write(path, {"lib.c": "int one;\n", "deep/more.c": "int more;\n"})
        git(path, "init", "-q", "-b", "main")
        git(path, "add", "-A")
        git(path, "commit", "-qm", "first")
    bare = cwd.parent / "vendored.git"
    git(cwd, "clone", "-q", "--bare", "vendored", str(bare))
    subprocess.run(["rm", "-r", str(cwd / "vendored")], check=True)
    _write(cwd, _PROJECT)
    (cwd / "src/run.sh").chmod(0o755)
    (cwd / "src/private.key").chmod(0o600)
    (cwd / "link.txt").symlink_to("notes.txt")
    (cwd / "src/up").symlink_to("..")
    (cwd / "dangling").symlink_to("nowhere/at all")
    git(cwd, "submodule", "--quiet", "add", "../vendored.git", "vendor/lib")
    git(cwd, "add", "-A", ":!inner")
    git(cwd, "commit", "-qm", "second")

    (cwd / "vendor/lib/lib.c").write_text("int one, edited;\n", encoding="utf-8")
    (cwd / "inner/lib.c").write_text("int one, edited;\n", encoding="utf-8")
    (cwd / "staged.txt").write_text("as staged\n", encoding="utf-8")
    git(cwd, "add", "staged.txt")
    (cwd / "staged.txt").write_text("staged, and then edited\n", encoding="utf-8")
    git(cwd, "update-index", "--assume-unchanged", "hidden.txt")
    (cwd / "hidden.txt").write_text("edited, and hidden from git\n", encoding="utf-8")
    (cwd / "deleted.txt").unlink()
    git(cwd, "mv", "renamed.txt", "src/renamed to.txt")
    _write(
        cwd,
        {".env": "TOKEN=t\n", "debug.log": "ignored\n", "untracked.txt": "untracked\n"},
    )
    (cwd / "untracked.txt").chmod(0o640)
    (cwd / "empty folder").mkdir()
    for name in _GIT_HOOKS:
        _program(
            cwd / ".git/hooks" / name,
            f'#!/bin/sh\n: >>"$MARKS/lookalike-hook-{name}"\n',
        )


def world_at(root: Path, *, is_lived_in: bool, confined: Sequence[str] = ()) -> World:
    """The world of a copy of what was built."""
    home, cwd, marks = root / "user", _cwd(root), root / "marks"
    place = Workplace(home / ".codex", cwd)
    if not is_lived_in:
        return World(place, {}, marks, is_lived_in=False, confined=confined)
    lookalikes = cwd / ".venv/bin"
    config = home / ".gitconfig"
    text = config.read_text(encoding="utf-8").replace("{lookalikes}", str(lookalikes))
    config.write_text(text, encoding="utf-8")
    lookalike = str(lookalikes / "node")
    dead = "http://127.0.0.1:1"
    variables = {
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"), dead),
        "NO_PROXY": "127.0.0.1,localhost",
        "OPENAI_BASE_URL": f"{dead}/v1",
        "OPENAI_API_KEY": "sk-of-the-gateway",
        "ANTHROPIC_BASE_URL": dead,
        "VIRTUAL_ENV": str(cwd / ".venv"),
        "PATH": os.pathsep.join((str(lookalikes), str(home / "bin"), _PATH)),
        "PYTHONPATH": os.pathsep.join((".", str(cwd / "build/lib"))),
        "PYTHONSTARTUP": str(home / "lib/startup.py"),
        "PYTHONWARNINGS": "default",
        **dict.fromkeys(
            ("GIT_PAGER", "GIT_EDITOR", "PAGER", "EDITOR", "VISUAL"), lookalike
        ),
        "GIT_AUTHOR_NAME": "Ada at work",
        "GIT_TERMINAL_PROMPT": "0",
        "LANG": "tr_TR.ISO-8859-9",
        "TMPDIR": str(root / "tmp"),
        "MARKS": str(marks),
        "EMPTY": "",
    }
    return World(place, variables, marks, is_lived_in=True, confined=confined)


def copy_of(template: Path, root: Path) -> None:
    """Links, modes and times as they are."""
    subprocess.run(["cp", "-a", f"{template}/.", str(root)], check=True)


def _cwd(root: Path) -> Path:
    return root / "user" / "src" / "project"


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _marking_module(name: str) -> str:
    return f"import os\nopen(os.environ['MARKS'] + '/lookalike-{name}.py', 'w').close()\nraise ImportError\n"
