"""The two steps of action.yml: `start` has the key and starts its proxy, `run` runs the agent, which uses the proxy.

The first one is over when the agent starts: no process with the key in its environment is there then.
"""

import http.client
import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trigger import refusal

from codex_py.app.output_schema import read_schema
from codex_py.command_line.configuration import load_exec_config
from codex_py.command_line.parser import HelpRequested
from codex_py.command_line.parsing import parse_arguments
from codex_py.config.config import Config
from codex_py.config.model_name import split_model
from codex_py.config.paths import codex_home
from codex_py.errors import CodexError, UsageError
from codex_py.filesystem.texts import NotText, decode_text
from codex_py.model.providers import WIRES, resolve_provider
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS
from codex_py.sandbox.child import kernel
from codex_py.streams.terminal import printable
from codex_py.streams.workflow_commands import command_text

_PYTHON = (sys.executable, "-P")
_KEY_PROXY = Path(__file__).with_name("key_proxy.py")
_MODEL = "openai/gpt-5"
"""Of GitHub Models."""
_STRATEGIES = ("drop-sudo", "read-only", "unsafe")
_FOR_THE_PROXY = ("PATH", "HOME", "RUNNER_TRACKING_ID", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables. The runner ends what has its tracking id with the job."""
_NOT_FOR_THE_AGENT = (
    "PLAN",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
)
_REVIEWED = ("uncommitted", "base", "commit")
_OPTIONS = (
    *("max-turns", "max-tokens", "max-cost", "max-time"),
    *("verify", "forbid-path", "max-diff-lines", "require-evidence", "fail-on"),
)
"""Inputs that are options of `exec`, one for each line."""
_MAX_PATCH_CHARS = 900_000
"""GitHub takes 1 MB for an output."""
_MAX_SHOWN_CHARS = 2_000


def start(environment: Mapping[str, str]) -> int:
    inputs: dict[str, str] = json.loads(environment["INPUTS"])
    event = json.loads(
        Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8")
    )
    actor, event_name = environment["GITHUB_ACTOR"], environment["GITHUB_EVENT_NAME"]
    if reason := refusal(actor, event_name, event, inputs):
        raise UsageError(f"the agent is not run: {reason}")
    if inputs["safety-strategy"] == "unprivileged-user" or inputs["codex-user"]:
        raise UsageError("there is no `unprivileged-user`: run the job as another user")
    key = inputs.pop("openai-api-key").strip()
    provider, model = "openai", inputs["model"]
    if not key:
        provider, model = "github", model.removeprefix("github/") or _MODEL
    elif named := split_model(model, BUILT_IN_PROVIDERS):
        provider, model = named
    if address := inputs["responses-api-endpoint"]:
        path = urlsplit(address).path
        wire_api = next(
            (wire for wire, (_, end) in WIRES.items() if path.endswith(end)), ""
        )
        if not wire_api or (provider == "openai" and wire_api != "responses"):
            if provider == "openai":
                ends = [WIRES["responses"][1]]
            else:
                ends = [end for _, end in WIRES.values()]
            text = f"`responses-api-endpoint` is no endpoint of the provider {provider}"
            raise UsageError(f"{text}: it must end in {' or '.join(ends)}")
    else:
        found = resolve_provider(provider, {})
        wire_api, address = found.wire_api, found.base_url + WIRES[found.wire_api][1]
    plan: dict[str, Any] = {
        "inputs": inputs,
        "provider": provider,
        "model": model,
        "wire_api": wire_api,
        "address": address,
        "key": "the input `openai-api-key`" if key else "the token of the job",
        "base": event.get("pull_request", {}).get("base", {}).get("sha", ""),
        "port": 0,
    }
    _require_inputs(plan, environment)
    header = "x-api-key" if wire_api == "anthropic" else "authorization"
    proxy = subprocess.Popen(
        [*_PYTHON, str(_KEY_PROXY), f"/v1{WIRES[wire_api][1]}", address, header],
        env={
            name: value
            for name, value in environment.items()
            if name in _FOR_THE_PROXY or name.lower().endswith("_proxy")
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert proxy.stdin is not None
    assert proxy.stdout is not None
    with proxy.stdin as stdin:
        stdin.write((key or environment["GITHUB_TOKEN"]).encode())
    if not (line := proxy.stdout.readline()):
        raise UsageError("the proxy of the key did not start")
    plan |= json.loads(line)
    print(f"::add-mask::{plan['token']}")
    _output(environment, "plan", json.dumps(plan))
    return 0


def run(environment: Mapping[str, str]) -> int:
    if sys.platform == "linux":
        # Commands without a sandbox could read our variables in `/proc`, such as `ACTIONS_ID_TOKEN_REQUEST_TOKEN`.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    plan = json.loads(environment["PLAN"])
    # The proxy of the key ends when this connection does.
    lifeline = http.client.HTTPConnection("127.0.0.1", plan["port"])
    headers = {"authorization": f"Bearer {plan['token']}"}
    lifeline.request("GET", "/until-closed", headers=headers)
    lifeline.getresponse()
    inputs: dict[str, str] = plan["inputs"]
    places = _Places(inputs, environment)
    temporary = Path(tempfile.mkdtemp(dir=environment["RUNNER_TEMP"]))
    schema_file = places.schema_file
    if inputs["output-schema"]:
        schema_file = temporary / "schema"
        schema_file.write_text(inputs["output-schema"], encoding="utf-8")
    schema = [] if schema_file is None else [f"--output-schema={schema_file}"]
    (temporary / "prompt").write_text(places.prompt, encoding="utf-8")
    agent = Agent(plan, environment, places.cwd, temporary)
    code = agent.run("exec", *schema, "-") if places.prompt else 0
    if inputs["review"] and not code:
        # A folder that is made now: no command of the agent has seen it, and the lines are commands to the runner.
        notes = Path(tempfile.mkdtemp(dir=environment["RUNNER_TEMP"]), "annotations")
        code = agent.run(
            "review", "--format=github", f"-o{notes}", *_review_words(plan, environment)
        )
        if notes.exists():
            print(notes.read_text(encoding="utf-8"))
    # The agent may have put a link in its place.
    if inputs["output-file"] and _inside("output-file", inputs, environment) == (
        places.output_file
    ):
        places.output_file.write_text(agent.message, encoding="utf-8")
    _output(environment, "final-message", agent.message)
    _output(
        environment,
        "patch",
        agent.patch if len(agent.patch) <= _MAX_PATCH_CHARS else "",
    )
    _output(environment, "findings", json.dumps(agent.findings))
    _output(environment, "exit-code", str(code))
    if code:
        print(
            f"::error title=codex-py::{command_text(printable(agent.error))} (exit code {code})"
        )
    return code


class _Places:
    """The files and the folder that the inputs name, and the task.

    Raises:
        UsageError: one of them is not in the workspace, or there is nothing to do.
        OSError: the file with the task cannot be read.
    """

    def __init__(
        self, inputs: Mapping[str, str], environment: Mapping[str, str]
    ) -> None:
        self.output_file = _inside("output-file", inputs, environment)
        self.cwd = _inside("working-directory", inputs, environment)
        self.prompt = inputs["prompt"]
        if inputs["prompt-file"]:
            file = _inside("prompt-file", inputs, environment)
            self.prompt = _text_of("prompt-file", inputs["prompt-file"], file)
        if not (self.prompt or inputs["review"]):
            raise UsageError("give `prompt`, `prompt-file` or `review`")
        self.schema_file: Path | None = None
        if inputs["output-schema-file"]:
            self.schema_file = _inside("output-schema-file", inputs, environment)


def _text_of(name: str, given: str, file: Path) -> str:
    """The text of the file in an input. Raises a `UsageError` if it cannot be read."""
    try:
        return decode_text(file.read_bytes())
    except OSError as error:
        raise UsageError(
            f"`{name}`: {given!r} cannot be read: {error.strerror}"
        ) from None
    except NotText as error:
        raise UsageError(f"`{name}`: {given!r} cannot be read: {error}") from None


def _inside(
    name: str, inputs: Mapping[str, str], environment: Mapping[str, str]
) -> Path:
    """The path in an input. Raises a `UsageError` if it is not in the workspace."""
    workspace = Path(environment["GITHUB_WORKSPACE"]).resolve()
    path = (workspace / inputs[name]).resolve()
    if not path.is_relative_to(workspace):
        raise UsageError(f"`{name}`: {inputs[name]!r} is not in the workspace")
    return path


def _review_words(plan: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """What is reviewed, and which findings fail the job."""
    inputs: dict[str, str] = plan["inputs"]
    kind, _, name = inputs["review"].partition(" ")
    if kind not in _REVIEWED:
        names = ", ".join(_REVIEWED)
        raise UsageError(f"`review: {inputs['review']}` is none of {names}")
    name = name or {"base": plan["base"], "commit": environment["GITHUB_SHA"]}.get(
        kind, ""
    )
    words = [f"--{kind}={name}" if name else f"--{kind}"]
    if inputs["review-fail-on"]:
        words.append(f"--fail-on={inputs['review-fail-on']}")
    return words


class Agent:
    """Runs the program, shows what it does, and keeps what comes of it."""

    def __init__(
        self,
        plan: Mapping[str, Any],
        environment: Mapping[str, str],
        cwd: Path,
        temporary: Path,
    ) -> None:
        self.message, self.patch, self.error = "", "", ""
        self.findings: list[Any] = []
        self._cwd, self._temporary = cwd, temporary
        self._options = _options(plan)
        self._plan = plan
        token: str = plan["token"]
        self._environment = {
            name: value
            for name, value in environment.items()
            if name not in _NOT_FOR_THE_AGENT and not name.startswith("ACTIONS_")
        }
        self._summary = environment.get("GITHUB_STEP_SUMMARY")
        self._environment[_key_variable(plan["provider"])] = token
        # The folder of the runner may have its command files in it, and commands may write to $TMPDIR.
        self._environment["TMPDIR"] = tempfile.mkdtemp(prefix="codex-py-", dir="/tmp")
        exempt = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
        self._environment["no_proxy"] = f"{exempt},127.0.0.1"
        self._environment |= _home(plan["inputs"], environment)

    def run(self, command: str, *words: str) -> int:
        argv = [*_PYTHON, "-m", "codex_py", command, "--json", *self._options, *words]
        given, said = self._temporary / "prompt", self._temporary / "stderr"
        # It would name the proxy, which nobody outside of this step knows.
        summary = self._temporary / "summary"
        self._environment["GITHUB_STEP_SUMMARY"] = str(summary)
        message, self.message = self.message, ""
        # Between these two lines, nothing that is printed is a command to the runner.
        end = secrets.token_hex(16)
        print(f"::stop-commands::{end}", flush=True)
        with (
            given.open("rb") as stdin,
            said.open("wb") as stderr,
            subprocess.Popen(
                argv,
                cwd=self._cwd,
                env=self._environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
            ) as process,
        ):
            for line in process.stdout or ():
                self._take(json.loads(line))
        self._add_summary(summary)
        self.message = message or self.message
        text = said.read_text(encoding="utf-8", errors="replace")
        warnings = printable(self._told(text)).strip()
        print(f"{warnings}\n::{end}::", flush=True)
        if process.returncode and not self.error:
            self.error = (
                warnings.rpartition("\n")[2]
                or "the review has findings that fail the job"
            )
        return process.returncode

    def _add_summary(self, summary: Path) -> None:
        """Move the program's summary to the one of the step."""
        if self._summary is None or not summary.exists():
            return
        text = summary.read_text(encoding="utf-8", errors="replace")
        summary.unlink()
        with Path(self._summary).open("a", encoding="utf-8") as file:
            file.write(self._told(text))

    def _take(self, event: dict[str, Any]) -> None:
        if event["type"] == "item.completed":
            item: dict[str, Any] = event["item"]
            shown: str = (
                item.get("text") or item.get("message") or item.get("command") or ""
            )
            if item["type"] == "file_change":
                shown = "\n".join(
                    f"{each['kind']} {each['path']}" for each in item["changes"]
                )
            if item["type"] == "command_execution":
                output: str = item["aggregated_output"][-_MAX_SHOWN_CHARS:]
                shown = f"$ {shown}\n{output}(exit code {item['exit_code']})"
            if item["type"] == "agent_message":
                self.message = shown
            if item["type"] == "error":
                shown = self._told(shown)
            print(printable(shown), flush=True)
        elif event["type"] in {"turn.completed", "turn.failed"}:
            self.patch += event.get("diff", "")
            self.findings += event.get("review", {}).get("findings", [])
            gates: list[dict[str, str]] = event.get("gates", [])
            # Only a gate that failed has a reason.
            failed = [
                f"{each['name']}: {each['reason']}"
                for each in gates
                if "reason" in each
            ]
            print(
                "\n".join(
                    printable(each["output"]) for each in gates if "output" in each
                )
            )
            error: str = event.get("error", {}).get("message") or ""
            self.error = self._told(error) or "; ".join(failed)

    def _told(self, text: str) -> str:
        """A message of the program with the provider's address and key, which it does not know."""
        address: str = self._plan["address"]
        end = WIRES[self._plan["wire_api"]][1]
        provider = urlsplit(address)
        base = (
            f"{provider.scheme}://{provider.hostname}{provider.path.removesuffix(end)}"
        )
        if provider.port is not None:
            base = base.replace(
                f"//{provider.hostname}", f"//{provider.hostname}:{provider.port}", 1
            )
        variable = _key_variable(self._plan["provider"])
        text = text.replace(_proxy_address(self._plan), base)
        return text.replace(f"environment variable {variable}", self._plan["key"])


def _options(plan: Mapping[str, Any]) -> list[str]:
    """What `exec` and `review` get alike."""
    inputs: dict[str, str] = plan["inputs"]
    provider: str = plan["provider"]
    address = _proxy_address(plan)
    settings: dict[str, Any] = {"model_provider": provider}
    if provider == "openai":
        settings["openai_base_url"] = address
    else:
        settings[f"model_providers.{provider}.base_url"] = address
        settings[f"model_providers.{provider}.wire_api"] = plan["wire_api"]
        settings[f"model_providers.{provider}.env_key"] = _key_variable(provider)
        settings[f"model_providers.{provider}.key_header"] = "bearer"
    if inputs["effort"]:
        settings["model_reasoning_effort"] = inputs["effort"]
    words = ["--skip-git-repo-check", *_permission_words(inputs)]
    if plan["model"]:
        words.append(f"--model={plan['model']}")
    words += [f"--config={key}={json.dumps(value)}" for key, value in settings.items()]
    for name in _OPTIONS:
        words += [
            f"--{name}={line.strip()}"
            for line in inputs[name].splitlines()
            if line.strip()
        ]
    if inputs["require-change"] == "true":
        words.append("--require-change")
    return words + _extra_words(inputs)


def _proxy_address(plan: Mapping[str, Any]) -> str:
    """The address that the program has in place of the provider's."""
    return f"http://127.0.0.1:{plan['port']}/v1"


def _key_variable(provider: str) -> str:
    """The variable from which the program reads the token of the proxy. It is not in the environment of commands."""
    return "CODEX_API_KEY" if provider == "openai" else "CODEX_PY_PROXY_TOKEN"


def _permission_words(inputs: Mapping[str, str]) -> list[str]:
    if inputs["permission-profile"]:
        return [
            f"--config=default_permissions={json.dumps(inputs['permission-profile'])}"
        ]
    if inputs["safety-strategy"] == "read-only":
        return ["--sandbox=read-only"]
    return [f"--sandbox={inputs['sandbox'] or 'workspace-write'}"]


def _extra_words(inputs: Mapping[str, str]) -> list[str]:
    extra = inputs["codex-args"].strip()
    try:
        if not extra.startswith("["):
            return shlex.split(extra)
        words: list[Any] = json.loads(extra)
    except ValueError as error:
        kind = "JSON array" if extra.startswith("[") else "line of a shell"
        raise UsageError(f"`codex-args` is no {kind}: {error}") from None
    if not all(isinstance(word, str) for word in words):
        raise UsageError("`codex-args`: the words of the JSON array are strings")
    return words


def _home(
    inputs: Mapping[str, str], environment: Mapping[str, str]
) -> Mapping[str, str]:
    """`CODEX_HOME` as the inputs have it, which is made if it is missing; nothing if they leave it out.

    Raises:
        UsageError: the home is in the workspace, whoever says so. Whoever wrote what was checked out would configure
            the agent, and a configuration can name programs that run without a sandbox.
    """
    workspace = Path(environment["GITHUB_WORKSPACE"]).resolve()
    given = inputs["codex-home"]
    if given:
        said, home = f"`codex-home`: {given!r}", (workspace / given).resolve()
    else:
        home = codex_home(environment).resolve()
        said = (
            f"the home of codex-py, by the variables CODEX_HOME and HOME: {str(home)!r}"
        )
    if home.is_relative_to(workspace):
        raise UsageError(
            f"{said} is in the workspace, where the checkout could configure the agent; copy the files"
            " to a folder outside of it"
        )
    if not given:
        return {}
    home.mkdir(parents=True, exist_ok=True)
    return {"CODEX_HOME": str(home)}


def _require_inputs(plan: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Refuse what the program would refuse, before the key has a proxy.

    Raises:
        CodexError: an input is wrong, or inputs contradict each other.
        OSError: a file that an input names cannot be read.
    """
    inputs: dict[str, str] = plan["inputs"]
    strategy = inputs["safety-strategy"]
    if strategy not in _STRATEGIES:
        names = ", ".join(_STRATEGIES)
        raise UsageError(f"`safety-strategy: {strategy}` is none of {names}")
    places = _Places(inputs, environment)
    if inputs["output-schema"]:
        read_schema(inputs["output-schema"].encode(), "`output-schema`")
    elif places.schema_file is not None:
        given = inputs["output-schema-file"]
        text = _text_of("output-schema-file", given, places.schema_file)
        read_schema(text.encode(), f"`output-schema-file`: {given!r}")
    options = _options(plan)
    variables = {**environment, **_home(inputs, environment)}
    try:
        if inputs["review"]:
            parse_arguments(["review", *options, *_review_words(plan, environment)])
        words = ["exec", f"--cd={places.cwd}", *options, "-"]
        arguments = parse_arguments(words)
    except HelpRequested:
        raise UsageError("`codex-args`: `--help` runs no agent") from None
    _require_strategy(strategy, load_exec_config(arguments, variables))


def _require_strategy(strategy: str, config: Config) -> None:
    """Refuse inputs that give the agent more than the safety strategy says, by the permissions that come out of all.

    Raises:
        UsageError: they contradict each other.
    """
    if strategy == "unsafe":
        return
    mode = config.sandbox_policy().mode
    if strategy == "read-only" and mode != "read-only":
        raise UsageError(
            f"`safety-strategy: read-only` contradicts other inputs: they ask for {mode}"
        )
    if mode == "danger-full-access":
        raise UsageError(
            "`sandbox: danger-full-access`, in whatever input, needs `safety-strategy: unsafe`"
        )
    if config.settings.approvals_reviewer not in {None, "user"}:
        raise UsageError(
            "a model that approves commands outside of the sandbox needs `safety-strategy: unsafe`"
        )


def _output(environment: Mapping[str, str], name: str, value: str) -> None:
    end = secrets.token_hex(16)
    with Path(environment["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"{name}<<{end}\n{value}\n{end}\n")


if __name__ == "__main__":
    try:
        sys.exit({"start": start, "run": run}[sys.argv[1]](os.environ))
    except (CodexError, OSError, ValueError) as error:
        print(f"::error title=codex-py::{command_text(str(error))}")
        sys.exit(error.exit_code if isinstance(error, CodexError) else 2)
