"""Runs a job of a GitHub Actions workflow on this machine: scripts, composite actions, and stand-ins for other actions.

What it knows is what the documentation says of contexts, file commands and workflow commands:
https://docs.github.com/en/actions/reference/workflows-and-actions. There is no container, no matrix, and no Node.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.workflow_expressions import filled, holds

_STEP_S: Final = 240
LEAVING_S: Final = 10.0
"""What runs longer than the job is left behind."""
_COMMAND = re.compile(r"^::([\w-]+)(?: ([^:]*(?::(?!:)[^:]*)*))?::(.*)$")
_SHELLS: Final[Mapping[str, tuple[str, ...]]] = {
    "bash": ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail"),
    "sh": ("sh", "-e"),
    "python": ("python",),
}
_FILES: Final = (
    "GITHUB_OUTPUT",
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
)

StandIn = Callable[["Job", Mapping[str, str]], Mapping[str, str]]
"""An action that is not composite: gets the job and its inputs, and returns its outputs."""


class WorkflowError(Exception):
    """The workflow or an action cannot be run as it is written."""


@dataclass(frozen=True)
class Annotation:
    level: str
    message: str
    properties: Mapping[str, str]


@dataclass
class JobResult:
    conclusion: str = "success"
    log: str = ""
    """With masks in place of secrets, as people see it."""
    raw_log: str = ""
    annotations: list[Annotation] = field(default_factory=list[Annotation])
    summary: str = ""
    steps: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Of the job itself, by id: `outputs`, `outcome`, `conclusion`."""
    all_outputs: list[Mapping[str, str]] = field(
        default_factory=list[Mapping[str, str]]
    )
    """Of each step, those within actions included."""
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    left_behind: list[str] = field(default_factory=list[str])
    """Command lines of processes that had to be ended."""


@dataclass
class _Scope:
    """The steps of the job, or those of a composite action."""

    inputs: Mapping[str, str]
    action_path: Path | None
    env: dict[str, str]
    steps: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    status: str = "success"


class Job:
    def __init__(
        self,
        folder: Path,
        *,
        actions: Mapping[str, Path | StandIn],
        secrets: Mapping[str, str] | None = None,
        event_name: str = "workflow_dispatch",
        event: Mapping[str, Any] | None = None,
        actor: str = "octocat",
        sha: str = "0" * 40,
        variables: Mapping[str, str] | None = None,
        limit: Callable[[], object] | None = None,
    ) -> None:
        """
        Args:
            folder: for the workspace and all that the runner keeps.
            actions: by name and without a version, what `uses` means: the folder of a composite action, or a stand-in.
            variables: of the runner itself.
            limit: runs in each process of a step, before its program.
        """
        self.workspace = folder / "work"
        self.temp = folder / "_temp"
        self._commands = self.temp / "_runner_file_commands"
        for path in (self.workspace, self._commands):
            path.mkdir(parents=True, exist_ok=True)
        (self.temp / "event.json").write_text(json.dumps(event or {}), encoding="utf-8")
        self._actions = actions
        self._limit = limit
        self._tracking = f"github_{uuid.uuid4()}"
        token = f"ghs_{uuid.uuid4().hex}"
        self._secrets = {"GITHUB_TOKEN": token, **(secrets or {})}
        self._masks = set(self._secrets.values())
        self._github: dict[str, Any] = {
            "actor": actor,
            "event_name": event_name,
            "event": dict(event or {}),
            "workspace": str(self.workspace),
            "repository": "octo-org/octo-repo",
            "sha": sha,
            "ref": "refs/heads/main",
            "token": token,
            "event_path": str(self.temp / "event.json"),
            "run_id": "1",
            "action_path": "",
        }
        self._variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_TRACKING_ID": self._tracking,
            "LANG": "C.UTF-8",
            **(variables or {}),
        }
        (folder / "home").mkdir(exist_ok=True)
        self._env: dict[str, str] = {}
        """Of the workflow, the job, and `GITHUB_ENV`."""
        self._paths: list[str] = []
        self._number = 0
        self._result = JobResult()

    @property
    def token(self) -> str:
        return self._secrets["GITHUB_TOKEN"]

    def run(self, workflow: str, job: str) -> JobResult:
        """Run a job of a workflow, given as YAML."""
        text: dict[str, Any] = yaml.safe_load(workflow)
        table: dict[str, Any] = text["jobs"][job]
        scope = _Scope({}, None, {})
        for env in (text.get("env"), table.get("env")):
            for name, value in _table(env).items():
                self._env[name] = filled(value, self._context(scope))
        try:
            self._run_steps(table["steps"], scope)
        finally:
            self._result.left_behind = self._end_processes()
        self._result.conclusion = scope.status
        self._result.steps = scope.steps
        for name, value in _table(table.get("outputs")).items():
            self._result.outputs[name] = filled(value, self._context(scope))
        self._result.log = self._masked(self._result.raw_log)
        return self._result

    def _run_steps(self, steps: list[dict[str, Any]], scope: _Scope) -> None:
        for step in steps:
            context = self._context(scope)
            outputs: dict[str, str] = {}
            if not holds(step.get("if"), context):
                outcome = conclusion = "skipped"
            else:
                own = {
                    k: filled(v, context) for k, v in _table(step.get("env")).items()
                }
                env = {**scope.env, **own}
                context = self._context(scope, env)
                if "uses" in step:
                    succeeded, outputs = self._use(step, env, context)
                else:
                    succeeded = self._run_script(step, scope, env, context, outputs)
                outcome = conclusion = "success" if succeeded else "failure"
                if (
                    not succeeded
                    and filled(step.get("continue-on-error"), context) == "true"
                ):
                    conclusion = "success"
            self._result.all_outputs.append(outputs)
            if "id" in step:
                scope.steps[step["id"]] = {
                    "outputs": outputs,
                    "outcome": outcome,
                    "conclusion": conclusion,
                }
            if conclusion == "failure":
                scope.status = "failure"

    def _use(
        self, step: Mapping[str, Any], env: dict[str, str], context: Mapping[str, Any]
    ) -> tuple[bool, dict[str, str]]:
        uses: str = step["uses"]
        given = {k: filled(v, context) for k, v in _table(step.get("with")).items()}
        local = self.workspace / uses
        action = (
            local
            if uses.startswith("./")
            else self._actions.get(uses.partition("@")[0])
        )
        if action is None:
            raise WorkflowError(f"no such action: {uses}")
        if not isinstance(action, Path):
            return True, dict(action(self, given))
        table: dict[str, Any] = yaml.safe_load(
            (action / "action.yml").read_text(encoding="utf-8")
        )
        if table["runs"]["using"] != "composite":
            raise WorkflowError(f"{uses} is not composite")
        declared = _table(table.get("inputs"))
        for name in given.keys() - declared.keys():
            self._say("warning", f"Unexpected input {name!r}")
        defaults = {
            k: filled(_table(v).get("default"), context) for k, v in declared.items()
        }
        scope = _Scope({**defaults, **given}, action, env)
        self._run_steps(table["runs"]["steps"], scope)
        inner = self._context(scope)
        outputs = _table(table.get("outputs"))
        return scope.status == "success", {
            k: filled(v["value"], inner) for k, v in outputs.items()
        }

    def _run_script(
        self,
        step: Mapping[str, Any],
        scope: _Scope,
        env: Mapping[str, str],
        context: Mapping[str, Any],
        outputs: dict[str, str],
    ) -> bool:
        if scope.action_path is not None and "shell" not in step:
            raise WorkflowError(f"a step of {scope.action_path} has no shell")
        self._number += 1
        script = self.temp / f"{self._number}.sh"
        script.write_text(filled(step["run"], context), encoding="utf-8")
        files = {name: self._commands / f"{name}_{self._number}" for name in _FILES}
        for file in files.values():
            file.touch()
        environment = {
            **self._variables,
            **{
                f"GITHUB_{k.upper()}": v
                for k, v in self._github.items()
                if isinstance(v, str)
            },
            **self._env,
            **env,
            **{name: str(file) for name, file in files.items()},
        }
        del environment["GITHUB_TOKEN"]
        if "GITHUB_TOKEN" in {**self._env, **env}:
            environment["GITHUB_TOKEN"] = {**self._env, **env}["GITHUB_TOKEN"]
        environment["GITHUB_ACTION_PATH"] = str(scope.action_path or "")
        environment["PATH"] = os.pathsep.join(
            [*reversed(self._paths), environment["PATH"]]
        )
        self._result.raw_log += (
            f"Run {step.get('name') or step['run'].splitlines()[0]}\n"
        )
        shown = {**self._env, **env}
        self._result.raw_log += "".join(
            f"  {name}: {value}\n" for name, value in shown.items()
        )
        code = self._started(
            [*_SHELLS[step.get("shell", "bash")], str(script)],
            self.workspace / filled(step.get("working-directory", "."), context),
            environment,
        )
        outputs |= _assignments(files["GITHUB_OUTPUT"])
        self._env |= _assignments(files["GITHUB_ENV"])
        self._paths += files["GITHUB_PATH"].read_text(encoding="utf-8").split()
        self._result.summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        if code:
            self._say("error", f"Process completed with exit code {code}.")
        return code == 0

    def _started(
        self, argv: list[str], cwd: Path, environment: Mapping[str, str]
    ) -> int:
        """Run it to its end; the exit code. Its lines are the log, and those that are commands are obeyed."""
        stop: str | None = None
        with subprocess.Popen(
            argv,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            preexec_fn=self._limit,
        ) as process:
            try:
                out, _ = process.communicate(timeout=_STEP_S)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        for line in out.splitlines():
            found = _COMMAND.match(line.strip())
            name, properties, message = found.groups() if found else ("", None, line)
            if stop is not None:
                if line.strip() == f"::{stop}::":
                    stop = None
                else:
                    self._result.raw_log += f"{line}\n"
            elif name == "stop-commands":
                stop = message
            elif name == "add-mask":
                self._masks.add(message)
            elif name in {"error", "warning", "notice"}:
                self._say(name, _unescaped(message), _properties(properties or ""))
            else:
                self._result.raw_log += f"{line}\n"
        return process.returncode

    def _say(
        self, level: str, message: str, properties: Mapping[str, str] | None = None
    ) -> None:
        self._result.annotations.append(Annotation(level, message, properties or {}))
        self._result.raw_log += f"##[{level}]{message}\n"

    def _context(
        self, scope: _Scope, env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        context: dict[str, Any] = {
            "github": {**self._github, "action_path": str(scope.action_path or "")},
            "env": {**self._env, **(scope.env if env is None else env)},
            "runner": {"os": "Linux", "arch": "X64", "temp": str(self.temp)},
            "job": {"status": scope.status},
            "steps": scope.steps,
            "inputs": scope.inputs,
        }
        # Actions see no secrets but those that are handed to them.
        return (
            context
            if scope.action_path is not None
            else {**context, "secrets": self._secrets}
        )

    def _masked(self, text: str) -> str:
        for mask in sorted(self._masks, key=len, reverse=True):
            # As it is, and as JSON has it within a text.
            for form in {mask, json.dumps(mask)[1:-1]} - {""}:
                text = text.replace(form, "***")
        return text

    def _end_processes(self) -> list[str]:
        """End what the job left running, as far as `/proc` shows whose it is; the command lines."""
        until = time.monotonic() + LEAVING_S
        while (running := self._running()) and time.monotonic() < until:
            time.sleep(0.05)
        for pid in running:
            os.kill(pid, signal.SIGKILL)
        return list(running.values())

    def _running(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if self._tracking.encode() in (folder / "environ").read_bytes():
                    words = (
                        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    )
                    found[int(folder.name)] = words
        return found


def _table(value: Any) -> dict[str, Any]:
    return value or {}


def _assignments(file: Path) -> dict[str, str]:
    """`NAME=VALUE` and `NAME<<END`, a line each."""
    found: dict[str, str] = {}
    lines = iter(file.read_text(encoding="utf-8").split("\n"))
    for line in lines:
        if not line:
            continue
        found_sign = re.search("<<|=", line)
        if found_sign is None:
            raise WorkflowError(f"invalid line in {file.name}: {line!r}")
        name, rest = line[: found_sign.start()], line[found_sign.end() :]
        if found_sign[0] == "=":
            found[name] = rest
            continue
        value: list[str] = []
        for each in lines:
            if each == rest:
                break
            value.append(each)
        else:
            raise WorkflowError(f"the delimiter {rest!r} is missing in {file.name}")
        found[name] = "\n".join(value)
    return found


def _properties(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {
        name.strip(): _unescaped(value).replace("%3A", ":").replace("%2C", ",")
        for name, _, value in pairs
    }


def _unescaped(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
