"""Every form of denial against everything that reads for the model: nothing of a denied file comes out anywhere.

A run that denies nothing shows that each of the readers would have found it.
"""

import base64
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codex_py.app.patching import changes_since_commit
from codex_py.config.config import Config, load_config
from codex_py.errors import ToolError
from codex_py.programs import programs_outside
from codex_py.sandbox.backends.backend import Backend
from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.sandbox.local_backends import BACKENDS, run_in
from tests.support.git import git
from tests.support.images import gif_with_comment
from tests.support.program import Workplace, environment, run_codex_py
from tests.support.searches import sample
from tests.support.server import ScriptedServer

SECRET = "s3cret-5e1f9"
COMMITTED = "c0mmitted-77a"
"""What git has of a denied file, which is not denied by itself."""
DONE = [*ev_message("done"), ev_completed()]
REVIEWED = json.dumps(
    {
        "findings": [],
        "overall_correctness": "patch is correct",
        "overall_explanation": "fine",
        "overall_confidence_score": 1,
    }
)
NAMES = ("text", "gif", "skill", "old", "new")
TEXT, IMAGE, SKILL, CHANGED, NEW = (f"dir/id_rsa.{name}.key" for name in NAMES)


@dataclass(frozen=True)
class Form:
    """A way to deny the files in `dir`, by the top of a configuration, its tables, and options."""

    name: str
    config: str = ""
    options: tuple[str, ...] = ()
    required: str = ""
    """By the administrator."""


def _profile(name: str, filesystem: str) -> Form:
    top = 'default_permissions = "p"\n[permissions.p]\nextends = ":workspace"\n'
    return Form(name, f"{top}[permissions.p.filesystem]\n{filesystem}\n")


_DENIED = '"dir/id_rsa.{}.key" = "deny"'
FORMS = (
    _profile(
        "file", f'":workspace_roots" = {{ {", ".join(map(_DENIED.format, NAMES))} }}'
    ),
    _profile("folder", '":workspace_roots" = { "dir" = "deny" }'),
    Form(
        "administrator", required='[permissions.filesystem]\ndeny_read = ["CWD/dir"]\n'
    ),
    _profile("absolute", '"CWD/dir" = "deny"'),
    _profile("home", '"~/HOME/dir" = "deny"'),
    _profile("glob", '":workspace_roots" = { "**/*.key" = "deny" }'),
    _profile("absolute glob", '"CWD/d[i]?/id_*" = "deny"'),
    Form("--deny", options=("--deny", "**/*.{pem,key}")),
    Form("protection.deny", 'protection.deny = ["dir/"]\n'),
    Form("protection.secrets", 'protection.secrets = "deny"\n'),
)
NO_DENIAL = Form("none")


def prepare(place: Workplace) -> None:
    """A repository with what is to be denied, and other names that lead to it."""
    cwd = place.cwd
    (cwd / "dir").mkdir()
    (cwd / CHANGED).write_text(f"{COMMITTED}\n", encoding="ascii")
    (cwd / "plain.txt").write_text("plain\n", encoding="ascii")
    git(cwd, "init", "-q")
    git(cwd, "add", "-fA")
    git(cwd, "commit", "-qm", "x")
    for name in (TEXT, CHANGED, NEW):
        (cwd / name).write_text(f"{SECRET}\n", encoding="ascii")
    (cwd / IMAGE).write_bytes(gif_with_comment(SECRET.encode()))
    front = f"---\nname: one\ndescription: {SECRET}\n---\n"
    (cwd / SKILL).write_text(front, encoding="ascii")
    (cwd / ".agents/skills/one").mkdir(parents=True)
    (cwd / ".agents/skills/one/SKILL.md").symlink_to(f"../../../{SKILL}")
    (cwd / "AGENTS.md").write_text(
        f"See @{TEXT} and @name.md and @hard.md.\n", encoding="ascii"
    )
    (cwd / "sub").mkdir()
    (cwd / "sub/AGENTS.md").symlink_to(f"../{TEXT}")
    (cwd / "name.md").symlink_to(TEXT)
    (cwd / "shot.gif").symlink_to(IMAGE)
    os.link(cwd / TEXT, cwd / "hard.md")
    os.link(cwd / IMAGE, cwd / "hard.gif")


COMMANDS = {
    "cat": f"cat {TEXT}",
    "redirection": f"while read l; do echo $l; done < {TEXT}",
    "tar": "tar cf - dir | grep -a s3c",
    "cp": f"cp {TEXT} copied; cat copied",
    "python": f"python3 -c \"print(open('{TEXT}').read())\"",
    "root": f"cat /proc/self/root$PWD/{TEXT}",
    "link": "cat name.md",
    "new link": f"ln -s {TEXT} l; cat l",
    "hard link": "cat hard.md",
    "new hard link": f"ln {TEXT} h; cat h",
    "move": "mv dir moved; cat moved/id_rsa.text.key; mv moved dir",
    "git": "git diff HEAD",
    "git grep": "git grep --no-index -h s3c",
}
EACH = "\n".join(f"echo '== {name}'; ({text}) 2>&1" for name, text in COMMANDS.items())
PATCHES = {
    "update": f"*** Update File: {TEXT}\n@@\n-{SECRET}\n+lost",
    "update a link": f"*** Update File: name.md\n@@\n-{SECRET}\n+lost",
    "update a hard link": f"*** Update File: hard.md\n@@\n-{SECRET}\n+lost",
    "delete": f"*** Delete File: {TEXT}",
    "add": f"*** Add File: {TEXT}\n+lost",
    "move away": f"*** Update File: {TEXT}\n*** Move to: moved.txt\n@@\n-{SECRET}\n+y",
    "move onto": f"*** Update File: plain.txt\n*** Move to: {TEXT}\n@@\n-plain\n+lost",
}
OBJECTS = "git cat-file --batch-all-objects --batch --unordered"
ALL = f"cat {TEXT} {CHANGED} {NEW} name.md ; {OBJECTS}"


def call(name: str, tool: str, **arguments: Any) -> list[Any]:
    return [*ev_function_call(name, tool, arguments), ev_completed()]


def patch(name: str, text: str) -> list[Any]:
    body = f"*** Begin Patch\n{text}\n*** End Patch"
    return [*ev_custom_tool_call(name, "apply_patch", body), ev_completed()]


class Cell:
    """A workspace with one form of denial, in which the readers do their work."""

    def __init__(self, place: Workplace, form: Form, outside: Path) -> None:
        self.place, self.form, self.outside = place, form, outside
        self.found: dict[str, bytes] = {}
        """What came out, by the name of the reader."""
        prepare(place)
        text = form.config.replace("CWD", str(place.cwd))
        self._config = text.replace(
            "HOME", str(place.cwd.relative_to(place.home.parent))
        )
        self._confined = required(outside, form.required.replace("CWD", str(place.cwd)))

    def run(self, *words: str, script: Sequence[Any] = (), same: bool = False) -> bytes:
        """What the model and the user get."""
        with ScriptedServer(list(script), each_thread=same) as server:
            self.place.configure(server)
            path = self.place.home / "config.toml"
            top, bracket, tables = self._config.partition("[permissions")
            base = path.read_text(encoding="utf-8")
            path.write_text(f"{top}{base}\n{bracket}{tables}", encoding="utf-8")
            home, cwd, before = self.place.home, self.place.cwd, self._confined
            done = run_codex_py(
                words, home, cwd, confined=before, real=True if before else None
            )
            self.requests = [request.body for request in server.requests]
        self.code = done.returncode
        return b"".join((done.stdout, done.stderr, json.dumps(self.requests).encode()))

    def exec(self, *words: str, script: Sequence[Any], same: bool = False) -> bytes:
        options = ("--json", "-s", "workspace-write", *self.form.options)
        return self.run(
            "exec", *options, *words, "go", script=[*script, DONE], same=same
        )

    def config(self) -> Config:
        """As the last run had it."""
        environ, flags = environment(self.place.home), {}
        if self.form.options:
            flags = {"protection": {"deny": list(self.form.options[1::2])}}
        system = self.outside / "etc/codex"
        return load_config(
            cwd=self.place.cwd, environment=environ, flags=flags, system=system
        )

    def call_alone(self) -> None:
        """The session, with all that its tools read."""
        log = self.outside / "given"
        hook = {"type": "command", "command": f"cat >> {shlex.quote(str(log))}"}
        hooks = {name: [{"hooks": [hook]}] for name in ("PostToolUse", "Stop")}
        text = json.dumps({"hooks": hooks})
        (self.place.home / "hooks.json").write_text(text, encoding="utf-8")
        images = {name: f"{name}.gif" for name in ("shot", "hard")} | {"image": IMAGE}
        script = [
            *(call(name, "view_image", path=path) for name, path in images.items()),
            call("commands", "exec_command", cmd=EACH),
            call("nested", "exec_command", cmd="ls", workdir="sub"),
            call("seen", "exec_command", cmd="ls"),
        ]
        bundle = self.outside / "bundle"
        words = ("--bundle", str(bundle), "--dangerously-bypass-hook-trust")
        self.found["events"] = self.exec(*words, script=script)
        assert self.code == 0, self.found["events"][-3000:]
        first = json.dumps(self.requests[0]["input"])
        self.found["AGENTS.md"] = "".join(first.split("<skills", 1)[0]).encode()
        self.found["skill"] = first.encode()
        for item in self.requests[-1]["input"]:
            if "output" in item:
                self.found[item["call_id"]] = json.dumps(item["output"]).encode()
        each = self.found.pop("commands").decode().split("== ")[1:]
        self.found |= {
            name: text.encode() for name, text in zip(COMMANDS, each, strict=True)
        }
        self.found["nested"] = json.dumps(self.requests[-1]["input"]).encode()
        self.found["hook"] = log.read_bytes()
        self.found["bundle"] = bundle.read_bytes()
        self.found["undo"] = self._kept_for_undo()

    def write(self) -> list[str]:
        """The patches that were made."""
        script = [patch(name, text) for name, text in PATCHES.items()]
        self.exec(script=script)
        items = [item for item in self.requests[-1]["input"] if "output" in item]
        return [
            item["call_id"] for item in items if "Success" in json.dumps(item["output"])
        ]

    def copy(self) -> None:
        """What has trees of its own, and what shows changes."""
        config = self.config()
        for form in ("html", "json", "md"):
            self.found[form] = self.run(
                "sessions", "export", "--last", "--format", form
            )
        bundle = self.outside / "portable"
        self.run("sessions", "export", "--last", "--portable", "-o", str(bundle))
        self.found["portable"] = bundle.read_bytes()
        programs = programs_outside(config.home, os.environ, config.cwd)
        diff = changes_since_commit(config.cwd, programs, os.environ, config.files)
        self.found["/diff"] = diff.encode()
        words = ("exec", *self.form.options, "review", "--uncommitted")
        self.found["review"] = self.run(
            *words, script=[[*ev_message(REVIEWED), ev_completed()]]
        )
        for name in ("hard.md", "hard.gif"):
            # They are outside of the trees that follow, which thus would not start.
            (self.place.cwd / name).unlink()
        reading = [call("all", "exec_command", cmd=ALL), DONE]
        told = self.exec(
            "--worktree=w", script=[call("all", "exec_command", cmd=f"cat {CHANGED}")]
        )
        self.found["worktree"] = told.replace(COMMITTED.encode(), SECRET.encode())
        self.found["changes"] = self.exec(
            "--worktree=v", "--with-changes", script=reading
        )
        self.found["best-of"] = self.exec("--best-of", "1", script=reading, same=True)

        task = json.dumps({"id": "t", "prompt": "go"})
        (self.place.cwd / "tasks.jsonl").write_text(f"{task}\n", encoding="ascii")
        words = (
            "batch",
            "tasks.jsonl",
            "-o",
            str(self.outside / "results.jsonl"),
            "--",
        )
        self.found["batch"] = self.run(
            *words, *self.form.options, script=reading, same=True
        )

    def _kept_for_undo(self) -> bytes:
        kept = b""
        for store in {path.parent for path in self.place.home.rglob("objects")}:
            words = [
                "git",
                "--git-dir",
                str(store),
                "cat-file",
                "--batch-all-objects",
                "--batch",
            ]
            kept += subprocess.run(words, capture_output=True, check=False).stdout
        return kept

    def shows(self, name: str) -> bool:
        data = self.found[name]
        whole = base64.b64encode(gif_with_comment(SECRET.encode()))
        return SECRET.encode() in data or whole in data


def required(folder: Path, text: str) -> list[str]:
    """The words before a program for which an administrator requires this."""
    if not text:
        return []
    etc = folder / "etc"
    (etc / "codex").mkdir(parents=True)
    for name in ("passwd", "group", "ld.so.cache"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), etc)
    (etc / "codex/requirements.toml").write_text(text, encoding="utf-8")
    script = f'mount --bind {shlex.quote(str(etc))} /etc && exec "$@"'
    words = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
    ]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*words, "true"], check=False).returncode
    ):
        pytest.skip("no namespace of mounts can be made here")
    return words


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    return tmp_path / "outside"


def test_each_reader_finds_what_is_not_denied(place: Workplace, outside: Path) -> None:
    cell = Cell(place, NO_DENIAL, outside)
    cell.call_alone()
    cell.copy()
    assert [name for name in cell.found if not cell.shows(name)] == ["seen"]
    assert {*cell.write()} >= {"update", "delete", "move onto"}


@pytest.mark.parametrize("form", sample(FORMS), ids=lambda form: form.name)
def test_no_reader_finds_what_is_denied(
    place: Workplace, outside: Path, form: Form
) -> None:
    cell = Cell(place, form, outside)
    cell.call_alone()
    cell.copy()
    # An export asks what the configuration denies, and a run alone has an option.
    late = {"portable"} if form.options else set[str]()
    assert [name for name in cell.found if cell.shows(name) and name not in late] == []
    assert cell.write() == []
    assert (place.cwd / TEXT).read_text(encoding="ascii") == f"{SECRET}\n"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_on_each_backend_a_form_is_held_or_the_start_refused(
    place: Workplace, outside: Path, backend: Backend, form: Form
) -> None:
    cell = Cell(place, form, outside)
    cell.run("features")
    policy = cell.config().sandbox_policy()
    try:
        done = run_in(
            backend, ["sh", "-c", f"{EACH}\ncat plain.txt"], policy, place.cwd
        )
    except ToolError:
        assert backend.name in {"supervised", "landlock"}
    else:
        assert done.stdout.endswith("plain\n")
        assert SECRET not in done.stdout
