"""Makes attempts on the nodes of a Ray cluster; each node runs a `batch` of one task.

https://docs.ray.io/en/latest/ray-core

Ray is optional. Every node needs this program at the same path, git, the folders of the tasks,
and the same `$CODEX_HOME`.
"""

import asyncio
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from codex_py.api.attempts import PROGRAM
from codex_py.api.commands import CodexError, ExitCode
from codex_py.api.configuration import Config, ConfigError, secret_names
from codex_py.api.data import encode_json
from codex_py.api.program import DISTRIBUTION
from codex_py.extensions.batch.attempt import failed
from codex_py.extensions.batch.tasks import Task
from codex_py.extensions.batch.untrusted import SWITCH

_SENT = (
    "PATH",
    "HOME",
    "USER",
    "SHELL",
    "LANG",
    "LC_*",
    "TZ",
    "CODEX_*",
    "*_PROXY",
    "*_proxy",
)
"""Variables that agents get from the driver, besides keys and the variables that their tasks name.
They get none from the worker's own environment."""
_GRACE_S = 60.0
"""A node that has not answered this long after the time-out is given up."""

_Ended: TypeAlias = tuple[int, str, dict[str, bytes]]
"""The exit code of a node's program, the end of its standard error, and its files by name."""


class RayEngine:
    """Makes attempts on a Ray cluster.

    Args:
        address: address for `ray.init`; `local` starts a cluster here.
        cpus: processors that Ray reserves for a task.
        options: options of `exec` for all tasks.
        trusts_tasks: the nodes trust the rows, as the driver does.

    Raises:
        ConfigError: Ray is not installed, or the cluster has another version of it or of Python.
        CodexError: the cluster does not answer.
    """

    def __init__(
        self,
        address: str,
        cpus: float,
        options: Sequence[str],
        timeout_s: float,
        config: Config,
        environment: Mapping[str, str],
        *,
        trusts_tasks: bool = False,
    ) -> None:
        self._batch = [*PROGRAM, "batch", "-", "--jobs=1", "--retries=0"]
        if trusts_tasks:
            self._batch.append(SWITCH)
        self._options = options
        self._timeout_s = timeout_s
        self._environment = environment
        self._keys = secret_names(config)
        self._cwd = str(Path.cwd())
        self._driver = os.getpid() if address == "local" else None
        os.environ |= {**_ray_variables(address, environment), **environment}
        try:
            self._ray = import_module("ray")
        except ImportError:
            raise ConfigError(
                f"--ray needs Ray: pip install '{DISTRIBUTION}[ray]'"
            ) from None
        try:
            self._connect(address)
            remote = self._ray.remote(
                num_cpus=cpus,
                num_returns="streaming",
                # By default, Ray would silently repeat lost attempts, which then cost twice.
                max_retries=0,
                retry_exceptions=False,
                scheduling_strategy="SPREAD",
            )
            self._attempt: Any = remote(_on_node())
        except ConnectionError as error:
            text = f"there is no Ray at {address}: {_line(error)}"
            raise CodexError(text, exit_code=ExitCode.UNAVAILABLE) from error
        except (RuntimeError, ValueError) as error:
            raise ConfigError(f"Ray at {address}: {_line(error)}") from error

    def _connect(self, address: str) -> None:
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            # This starts a cluster of our own.
            settings["include_dashboard"] = False
            settings["object_store_memory"] = 200_000_000
        self._ray.init(address=address, **settings)

    async def run(self, task: Task, folder: Path) -> dict[str, Any]:
        """Make an attempt; see `LocalEngine.run`."""
        line = encode_json(task.row())
        timeout_s = task.timeout or self._timeout_s
        words = [*self._batch, f"--timeout={timeout_s}"]
        sent = self._sent(task)
        call = (words, self._options, line, sent, self._cwd, self._driver)
        stream = self._attempt.options(name=task.id).remote(*call)
        try:
            # Wait for the start: before it, the attempt may wait for processors or for a node.
            await (await anext(stream))
            async with asyncio.timeout(timeout_s + _GRACE_S):
                code, stderr, files = await (await anext(stream))
        except self._ray.exceptions.RayError as error:
            return failed("lost", _line(error))
        except (TimeoutError, asyncio.CancelledError) as error:
            # This is the only place that cancels. After an attempt has ended, a cancellation can
            # kill its worker, and then Ray aborts this process.
            self._ray.cancel(stream, force=True)
            if isinstance(error, TimeoutError):
                return failed("lost", "the node does not answer")
            raise
        for name, data in files.items():
            await asyncio.to_thread((folder / name).write_bytes, data)
        result = files.get("result.jsonl")
        if result:
            record: dict[str, Any] = json.loads(result)
            return {**record, "status": record["attempts"][0]["status"]}
        status = "lost"
        if code in {ExitCode.AUTHENTICATION, ExitCode.CONFIGURATION}:
            # Other attempts would fail in the same way.
            status = "stopped"
        return {**failed(status, stderr), "exit_code": code}

    def close(self) -> None:
        self._ray.shutdown()

    def _sent(self, task: Task) -> dict[str, str]:
        """The variables that the agent of a task gets."""
        patterns = (*self._keys, *task.env, *_SENT)

        def is_sent(name: str) -> bool:
            return any(fnmatchcase(name, pattern) for pattern in patterns)

        environment = self._environment
        return {name: environment[name] for name in environment if is_sent(name)}


def _ray_variables(address: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that configure Ray, unless the environment has them already."""
    variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    if address != "local":
        # By default, Ray takes 15 minutes to report that nobody answers.
        variables["RAY_NUM_REDIS_GET_RETRIES"] = "1"
        variables["RAY_py_gcs_connect_timeout_s"] = "5"
    named = environment.get("RAY_AUTH_TOKEN_PATH")
    token = Path(named or Path.home() / ".ray" / "auth_token")
    if "RAY_AUTH_TOKEN" in environment or token.exists():
        # With a token, we can also connect to a cluster that requires none.
        variables["RAY_AUTH_MODE"] = "token"
    return variables


def _line(error: Exception) -> str:
    """The message of an error, in one line."""
    return " ".join(str(error).split())


def _on_node() -> Callable[..., Iterator[_Ended | None]]:
    """Make the function for workers, which yields once when it begins and once at its end.

    It is an inner function, so Ray sends it by value: a worker may lack our package.

    The command of a node consists of the words in `before`, the option for the results, `--`, and
    the words in `behind`. Its standard input is `line`, which is the task file.
    """

    def attempt(
        before: Sequence[str],
        behind: Sequence[str],
        line: bytes,
        environment: Mapping[str, str],
        cwd: str,
        driver: int | None,
    ) -> Iterator[_Ended | None]:
        yield None
        worker = os.getpid()
        library = ctypes.CDLL(None)

        def die_with_worker() -> None:
            # Workers have SIGINT blocked.
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            if sys.platform == "linux":
                # PR_SET_PDEATHSIG. Unlike SIGKILL, this lets the work tree be removed.
                library.prctl(1, signal.SIGTERM)
            if os.getppid() != worker:
                os._exit(1)

        def end_with_driver(driver: int, child: subprocess.Popen[bytes]) -> None:
            # Where Ray dies with the driver, the worker needs 2 s to notice that.
            both = [os.pidfd_open(driver), os.pidfd_open(child.pid)]
            select.select(both, (), ())
            child.terminate()
            for each in both:
                os.close(each)

        # Commands in a sandbox cannot write below the home, as `own_folder` says.
        home = environment.get("CODEX_HOME") or os.path.expanduser("~/.codex")  # noqa: PTH111
        place = f"{home}/codex-py/tmp"
        os.makedirs(place, mode=0o700, exist_ok=True)  # noqa: PTH103
        with tempfile.TemporaryDirectory(prefix="batch.", dir=place) as folder:
            command = [*before, "-o", f"{folder}/result.jsonl", "--", *behind]
            child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment,
                cwd=cwd,
                preexec_fn=die_with_worker,
            )
            if driver is not None and sys.platform == "linux":
                watch = threading.Thread(
                    target=end_with_driver, args=(driver, child), daemon=True
                )
                watch.start()
            _, stderr = child.communicate(line)
            files: dict[str, bytes] = {}
            for path in Path(folder).rglob("[!.]*"):
                if path.is_file():
                    files[path.name] = path.read_bytes()[:50_000_000]
        yield child.returncode, stderr.decode(errors="replace")[-1000:], files

    return attempt
