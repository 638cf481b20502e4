"""Checks of the machine: the program, git, the disk, the terminal, the network's settings, the
sandbox."""

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from codex_py.app.user_programs import user_programs
from codex_py.commands.doctor.check import Check, CheckResult
from codex_py.config.config import Config
from codex_py.config.paths import project_root, user_home
from codex_py.errors import CodexError
from codex_py.http.proxy import proxies_from
from codex_py.patch.git import find_git
from codex_py.programs import programs_outside
from codex_py.protocol.addresses import shown_url
from codex_py.sandbox.choice import platform_backends, problem
from codex_py.version import __version__

_LIBRARIES: Final = ("httpx", "pydantic", "prompt-toolkit", "rich", "mcp")
_OF_PYTHON: Final = ("PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE")
"""Variables that let Python load modules from other places."""
_GIB: Final = 1 << 30
_LOW = 5 * _GIB
"""The check warns below this number of free bytes."""
_TOO_LOW = 1 * _GIB
"""The check fails below this number of free bytes, as in Codex."""
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def machine_checks(
    environment: Mapping[str, str],
    home: Path,
    cwd: Path,
) -> list[Check]:
    """The checks that need no configuration. `home`: `$CODEX_HOME`, or another folder in its
    place."""
    return [
        Check("runtime.provenance", "runtime", lambda: _runtime(environment)),
        Check("git.environment", "git", lambda: _git(environment, home, cwd)),
        Check("system.disk", "disk", lambda: _disk(home, cwd)),
        Check("terminal.env", "terminal", lambda: _terminal(environment)),
        Check("network.env", "network", lambda: _network(environment)),
    ]


def _runtime(environment: Mapping[str, str]) -> CheckResult:
    details = {
        "version": __version__,
        "current executable": sys.argv[0],
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": f"{sys.platform}-{platform.machine()}, {platform.release()}",
        "libraries": [f"{name} {version(name)}" for name in _LIBRARIES],
    }
    python = platform.python_version()
    text = f"codex-py {__version__} on Python {python}, {sys.platform}"
    found = {name: environment[name] for name in _OF_PYTHON if environment.get(name)}
    if found:
        names = " and ".join(found)
        text += f"; because of {names}, Python may load modules from elsewhere before it starts"
        remedy = f"Unset it, or start `{sys.executable} -I -m codex_py`."
        return CheckResult("warning", text, remedy, details | found)
    return CheckResult("ok", text, details=details)


def _git(
    environment: Mapping[str, str],
    home: Path,
    cwd: Path,
) -> CheckResult:
    root = project_root(cwd, (".git",)) or "none"
    try:
        git = find_git(programs_outside(home, environment, cwd), environment)
    except CodexError as error:
        details = {"selected git": "none", "repo root": str(root)}
        remedy = "Install git, or put a folder of the system first on PATH."
        return CheckResult("warning", str(error), remedy, details)
    details = {"selected git": git.program, "repo root": str(root)}
    return CheckResult("ok", "git was found; it was not run", details=details)


def _disk(home: Path, cwd: Path) -> CheckResult:
    at_home = shutil.disk_usage(_existing(home)).free
    here = shutil.disk_usage(_existing(cwd)).free
    details = {
        "CODEX_HOME available": _gib(at_home),
        "working directory available": _gib(here),
    }
    least = min(at_home, here)
    text = f"{_gib(least)} are free"
    if least >= _LOW:
        return CheckResult("ok", text, details=details)
    status = "fail" if least < _TOO_LOW else "warning"
    remedy = "Make room: sessions and patches need it."
    return CheckResult(status, f"only {text}", remedy, details)


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"


def _existing(path: Path) -> Path:
    """The path, or the nearest folder around it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _terminal(environment: Mapping[str, str]) -> CheckResult:
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    locales = [environment[name] for name in names if environment.get(name)]
    locale = locales[0] if locales else ""
    columns, lines = shutil.get_terminal_size()
    size = f"{columns}x{lines}"
    names = ("TERM", "COLORTERM", "NO_COLOR")
    details = {name: environment.get(name, "not set") for name in names}
    details["effective locale"] = locale or "not set"
    details["terminal size"] = size
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        details[f"{name} is terminal"] = str(os.isatty(fd)).lower()
    text = f"TERM={environment.get('TERM', '')}, {size}"
    if not os.isatty(1):
        return CheckResult("ok", text, details=details)
    if "utf" not in locale.lower():
        text += ", and the locale is not UTF-8"
        remedy = "Set LANG to a locale with UTF-8, such as C.UTF-8."
        return CheckResult("warning", text, remedy, details)
    if environment.get("TERM", "dumb") == "dumb":
        text += ": colours and keys are not used"
        remedy = "Set TERM to the type of the terminal, such as xterm-256color."
        return CheckResult("warning", text, remedy, details)
    return CheckResult("ok", text, details=details)


def _network(environment: Mapping[str, str]) -> CheckResult:
    details: dict[str, str] = {}
    for lower in _PROXIES:
        for name in (lower, lower.upper()):
            address = environment.get(name)
            if address:
                details[name] = shown_url(address)
    files = {name: environment[name] for name in _CERTIFICATES if environment.get(name)}
    details |= files
    proxies = proxies_from(environment)
    for name, path in files.items():
        if not os.access(path, os.R_OK):
            remedy = f"Correct or unset {name}."
            return CheckResult("fail", f"{name} cannot be read", remedy, details)
    if proxies is None:
        return CheckResult("ok", "connections are direct", details=details)
    problems = proxies.problems()
    if problems:
        remedy = "Correct or unset it; requests to hosts that NO_PROXY names need none."
        return CheckResult("fail", "; ".join(problems), remedy, details)
    return CheckResult("ok", "connections go through a proxy", details=details)


def sandbox_check(config: Config, environment: Mapping[str, str]) -> CheckResult:
    """Check which backend confines commands here: the first one that works."""
    mode = config.sandbox_policy().mode
    # A project must not bring a `bwrap` of its own.
    outside = user_programs(config, environment).environment(environment)
    search_path = outside.get("PATH", "")
    works = None
    problems: dict[str, str] = {}
    for backend in platform_backends(search_path, config.sandbox_limits):
        why_not = problem(backend)
        if why_not is None:
            works = backend.name
            break
        problems[backend.name] = why_not
    details = {"sandbox mode": mode, **problems}
    if works is not None:
        details[works] = "works here"
    if mode == "danger-full-access":
        text = f"commands are not confined ({mode})"
        remedy = (
            "Set `sandbox_mode` to workspace-write, unless the machine is a sandbox."
        )
        return CheckResult("warning", text, remedy, details)
    if works is None:
        text = "nothing on this machine can confine commands"
        remedy = (
            "Install bubblewrap, or let programs make user namespaces or use Landlock."
        )
        return CheckResult("fail", text, remedy, details)
    text = f"commands are confined by `{works}` ({mode})"
    if problems:
        text += "; --all says why not by a stronger backend"
    return CheckResult("ok", text, details=details)


def home_check(environment: Mapping[str, str], home: Path) -> CheckResult:
    """Check whether `$CODEX_HOME` can be written, and its login only be read by the user."""
    details = {"CODEX_HOME": str(home), "HOME": str(user_home(environment))}
    if not home.exists():
        text = f"{home} is not there yet; the first session makes it"
        return CheckResult("ok", text, details=details)
    details["mode"] = f"{home.stat().st_mode & 0o777:o}"
    if not os.access(home, os.W_OK | os.X_OK):
        text = f"{home} cannot be written: no session is kept"
        remedy = f"Make {home} writable, or point CODEX_HOME to a folder of yours."
        return CheckResult("warning", text, remedy, details)
    login = home / "auth.json"
    if login.exists() and login.stat().st_mode & 0o077:
        text = "others can read the stored login"
        return CheckResult("warning", text, f"chmod 600 {login}", details)
    return CheckResult("ok", f"{home} can be written", details=details)
