"""Starts programs for the user, such as MCP servers, hooks and programs that print a key. LIGHT.

This module decides where these programs are found, and what they see. A repository can hold a
program of any name, and modules that an interpreter loads from its working directory. If the user's
configuration has `npx` or `python -m server`, nothing of the repository must run in its place.
"""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from codex_py.config.config import Config
from codex_py.config.project_trust import Trusted
from codex_py.filesystem.private import make_private
from codex_py.model.providers import key_variable
from codex_py.programs import Programs, programs_outside
from codex_py.protocol.frozen import frozen

APPROVAL_KEY: Final = "CODEX_PY_APPROVAL_KEY"
"""The variable with the key that signs requests for approvals."""
_SETTINGS: Final = (
    "LANG",
    "LC_*",
    "TERM",
    "TZ",
    "*_PROXY",
    "*_HOME",
    "*_PATH",
    "*_DIR",
    "*_CERT*",
    "*_CA_*",
    "*DISPLAY",
    "XDG_*",
    "SSH_AUTH_SOCK",
    "DOCKER_HOST",
    "KUBECONFIG",
    "VIRTUAL_ENV",
)
"""Patterns of variables that are no secrets, even if they are configured for an MCP server.
Commands need them as well."""
_SHELLS: Final = frozenset({"bash", "zsh", "sh", "dash", "ksh", "ash"})
"""Shells that understand the scripts of models. Others, such as fish, are not used for commands."""


@frozen
class Start:
    """All that is needed to start a program."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]

    def detached(self, stdout: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Start the program without input, in a session of its own.

        It, or its children, may outlive this program.

        Raises:
            OSError, ValueError: the program cannot be started.
        """
        return subprocess.Popen(
            self.argv,
            cwd=self.cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


@frozen
class UserPrograms(Programs):
    """Finds the user's programs, and says where and with which variables they start."""

    project_cwd: Path | None
    """The folder in which programs start if the project is trusted; None: a folder of their own."""
    keys: frozenset[str]
    """The variables that hold keys; see `secret_names`."""

    def cwd(self) -> Path:
        """Return the working directory of programs without a configured `cwd`.

        Creates the folder if it is missing.
        """
        if self.project_cwd is not None:
            return self.project_cwd
        # Commands cannot write below our home; they can write to a temporary folder.
        folder = self.home / "codex-py" / "programs"
        try:
            make_private(folder)
        except OSError:
            return Path("/")
        return folder

    def without_keys(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables that hold no keys."""
        return {
            name: value for name, value in environment.items() if name not in self.keys
        }

    def outside(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path | None = None,
        *lists: str,
    ) -> Start:
        """Return the start of a program with only these variables.

        Neither the program nor the modules that it loads come from a barred folder.

        Args:
            cwd: None for `cwd()`.
            lists: variables that hold lists of folders, as `PATH` does.

        Raises:
            FileNotFoundError: see `find`.
        """
        folder = cwd or self.cwd()
        program = self.find(argv[0], environment, folder)
        filtered = self.environment(environment, *lists)
        return Start([program, *argv[1:]], folder, filtered)

    def passed_over_note(
        self, name: str, environment: Mapping[str, str], setting: str
    ) -> str | None:
        """Return a sentence for the user if another program is started than a shell would start.

        `setting`: the name of the setting that has the program.
        """
        barred = self.passed_over(name, environment)
        if barred is None:
            return None
        return (
            f"The program {name!r} of {setting} is not {barred}, which comes first on `PATH`,"
            " because a project or a command could have put it there; to use it, write this path"
            " into your configuration"
        )

    def start(
        self,
        command: str | Sequence[str],
        environment: Mapping[str, str],
        cwd: Path | None = None,
    ) -> Start:
        """Return the start of a program or a shell script outside of the sandbox, without keys.

        Args:
            cwd: None for `cwd()`.

        Raises:
            FileNotFoundError: see `find`.
        """
        visible = {**self.without_keys(environment), "CODEX_HOME": str(self.home)}
        is_trusted = self.project_cwd is not None
        if cwd is not None and not is_trusted:
            # Python would load modules from `cwd` first, which may be a folder of the project.
            visible["PYTHONSAFEPATH"] = "1"
        if not isinstance(command, str):
            return self.outside(command, visible, cwd, "PYTHONPATH")
        script = [user_shell(environment), "-c", command]
        if is_trusted:
            return Start(script, cwd or self.cwd(), visible)
        return self.outside(script, visible, cwd, "PYTHONPATH")


def user_programs(
    config: Config,
    environment: Mapping[str, str],
    add_dirs: Sequence[Path] = (),
) -> UserPrograms:
    """Return the programs of a session.

    `add_dirs`: writable folders besides those of the configuration.
    """
    # These folders are writable in every mode, because the user can change the mode.
    writable = [*config.sandbox_workspace_write.writable_roots]
    writable += [config.cwd / folder for folder in add_dirs]
    roots = filter(None, (config.project_root, config.layers.project_root))
    found = programs_outside(config.home, environment, config.cwd, *roots, *writable)
    is_trusted = isinstance(config.project_trust, Trusted)
    project_cwd = config.cwd if is_trusted else None
    keys = frozenset(secret_names(config))
    return UserPrograms(found.home, found.user_home, found.folders, project_cwd, keys)


def user_shell(environment: Mapping[str, str]) -> str:
    """Return the absolute path of the shell for the model's commands.

    The candidates are `$SHELL`, the user's login shell, bash and `/bin/sh`, in this order. The
    first one that is compatible with the Bourne shell and executable is used.
    """
    candidates = [environment.get("SHELL", "")]
    with suppress(KeyError):  # a container may run under a user id that has no entry
        candidates.append(pwd.getpwuid(os.getuid()).pw_shell)
    candidates.append("/bin/bash")
    return next(filter(_is_usable_shell, candidates), "/bin/sh")


def _is_usable_shell(shell: str) -> bool:
    path = Path(shell)
    if not path.is_absolute() or path.name not in _SHELLS:
        return False
    return os.access(path, os.X_OK)


def secret_names(config: Config) -> set[str]:
    """Return the variables that hold keys.

    They belong to the configured providers, to MCP servers, to signatures, and to the proxy of the
    GitHub Action.
    """
    names = {"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"}
    names |= {APPROVAL_KEY, "CODEX_PY_BUNDLE_KEY"}
    names.add("CODEX_PY_PROXY_TOKEN")
    providers = [config.model_provider, *config.model_providers]
    providers += [provider for provider, _ in config.model_fallbacks]
    for name in providers:
        variable = key_variable(name, config.model_providers)
        if variable:
            names.add(variable)
    for provider in config.model_providers.values():
        names.update(provider.get("env_http_headers", {}).values())
    for server in config.mcp_servers.values():
        names.update(server.env_http_headers.values())
        names.update(name for name in server.env_vars if not _is_setting(name))
        if server.bearer_token_env_var is not None:
            names.add(server.bearer_token_env_var)
    return names


def _is_setting(variable: str) -> bool:
    """True for a variable that commands need as well as a server."""
    return any(fnmatchcase(variable.upper(), pattern) for pattern in _SETTINGS)


def without_approval_key(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the key, which child processes must not see.

    The key is also erased from `/proc/PID/environ`, where the kernel shows it.
    """
    if APPROVAL_KEY in environment:
        # Without `/proc`, no other program can look there either.
        with suppress(OSError):
            _erase_key()
    return {name: value for name, value in environment.items() if name != APPROVAL_KEY}


def _erase_key() -> None:
    """Overwrite the key with zeros where the kernel keeps the environment of this process.

    Raises:
        OSError: `/proc` cannot be read, or not written.
    """
    after_name = Path("/proc/self/stat").read_bytes().rpartition(b")")[2]
    # The list begins with the third field. `env_start` is the 50th and `env_end` the 51st, see
    # proc(5). The byte before the first variable is a NUL.
    stat = after_name.split()
    start = int(stat[47]) - 1
    end = int(stat[48])
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(start)
        variables = memory.read(end - start)
        before, mark, after = variables.partition(b"\0%b=" % APPROVAL_KEY.encode())
        key = after.partition(b"\0")[0]
        memory.seek(start + len(before + mark))
        memory.write(bytes(len(key)))
