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
_GIB: Final = 1 << 30
_LOW = 5 * _GIB
_TOO_LOW = 1 * _GIB
"""The check fails below this number of free bytes, as in Codex."""
_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def machine_checks(
    environment: Mapping[str, str], home: Path, cwd: Path
) -> list[Check]:
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
    text = (
        f"codex-py {__version__} on Python {platform.python_version()}, {sys.platform}"
    )
    found = {name: environment[name] for name in _OF_PYTHON if environment.get(name)}
    if found:
        text += f"; because of {' and '.join(found)}, Python may load modules from elsewhere before it starts"
        remedy = f"Unset it, or start `{sys.executable} -I -m codex_py`."
        return CheckResult("warning", text, remedy, details | found)
    return CheckResult("ok", text, details=details)


def _git(
    environment: Mapping[str, str],
    home: Path,
    cwd: Path,
) -> CheckResult:
    details = {"repo root": str(project_root(cwd, (".git",)) or "none")}
    try:
        git = find_git(programs_outside(home, environment, cwd), environment)
    except CodexError as error:
        remedy = "Install git, or put a folder of the system first on PATH."
        return CheckResult(
            "warning", str(error), remedy, {"selected git": "none", **details}
        )
    details = {"selected git": git.program, **details}
    return CheckResult("ok", "git was found; it was not run", details=details)


def _disk(home: Path, cwd: Path) -> CheckResult:
    places = {"CODEX_HOME available": home, "working directory available": cwd}
    free = {
        name: shutil.disk_usage(_existing(path)).free for name, path in places.items()
    }
    details = {name: f"{size / _GIB:.1f} GiB" for name, size in free.items()}
    least = min(free.values())
    text = f"{least / _GIB:.1f} GiB are free"
    if least >= _LOW:
        return CheckResult("ok", text, details=details)
    status = "fail" if least < _TOO_LOW else "warning"
    return CheckResult(
        status, f"only {text}", "Make room: sessions and patches need it.", details
    )


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _terminal(environment: Mapping[str, str]) -> CheckResult:
    locales = (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next(filter(None, locales), "")
    columns, lines = shutil.get_terminal_size()
    size = f"{columns}x{lines}"
    names = ("TERM", "COLORTERM", "NO_COLOR")
    details = {name: environment.get(name, "not set") for name in names}
    details |= {"effective locale": locale or "not set", "terminal size": size}
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        details[f"{name} is terminal"] = str(os.isatty(fd)).lower()
    text = f"TERM={environment.get('TERM', '')}, {size}"
    if os.isatty(1) and "utf" not in locale.lower():
        remedy = "Set LANG to a locale with UTF-8, such as C.UTF-8."
        return CheckResult(
            "warning", f"{text}, and the locale is not UTF-8", remedy, details
        )
    if os.isatty(1) and environment.get("TERM", "dumb") == "dumb":
        remedy = "Set TERM to the type of the terminal, such as xterm-256color."
        return CheckResult(
            "warning", f"{text}: colours and keys are not used", remedy, details
        )
    return CheckResult("ok", text, details=details)


def _network(environment: Mapping[str, str]) -> CheckResult:
    details: dict[str, str] = {}
    for lower in _PROXIES:
        for name in (lower, lower.upper()):
            address = environment.get(name)
            if address:
                details[name] = shown_url(address)
    details |= {
        name: environment[name] for name in _CERTIFICATES if environment.get(name)
    }
    proxies = proxies_from(environment)
    for name in _CERTIFICATES:
        path = environment.get(name)
        if path and not os.access(path, os.R_OK):
            return CheckResult(
                "fail", f"{name} cannot be read", f"Correct or unset {name}.", details
            )
    problems = [] if proxies is None else proxies.problems()
    if problems:
        remedy = "Correct or unset it; requests to hosts that NO_PROXY names need none."
        return CheckResult("fail", "; ".join(problems), remedy, details)
    if proxies is None:
        text = "connections are direct"
    else:
        text = "connections go through a proxy"
    return CheckResult("ok", text, details=details)


def sandbox_check(config: Config, environment: Mapping[str, str]) -> CheckResult:
    mode = config.sandbox_policy().mode
    details = {"sandbox mode": mode}
    # A project must not bring a `bwrap` of its own.
    search_path = (
        user_programs(config, environment).environment(environment).get("PATH", "")
    )
    works = None
    for backend in platform_backends(search_path, config.sandbox_limits):
        why = problem(backend)
        details[backend.name] = why or "works here"
        if why is None:
            works = backend.name
            break
    if mode == "danger-full-access":
        remedy = (
            "Set `sandbox_mode` to workspace-write, unless the machine is a sandbox."
        )
        return CheckResult(
            "warning", f"commands are not confined ({mode})", remedy, details
        )
    if works is None:
        remedy = (
            "Install bubblewrap, or let programs make user namespaces or use Landlock."
        )
        return CheckResult(
            "fail", "nothing on this machine can confine commands", remedy, details
        )
    if len(details) > 2:
        why_not = "; --all says why not by a stronger backend"
    else:
        why_not = ""
    return CheckResult(
        "ok", f"commands are confined by `{works}` ({mode}){why_not}", details=details
    )


def home_check(environment: Mapping[str, str], home: Path) -> CheckResult:
    details = {"CODEX_HOME": str(home), "HOME": str(user_home(environment))}
    if not home.exists():
        return CheckResult(
            "ok",
            f"{home} is not there yet; the first session makes it",
            details=details,
        )
    details["mode"] = f"{home.stat().st_mode & 0o777:o}"
    if not os.access(home, os.W_OK | os.X_OK):
        remedy = f"Make {home} writable, or point CODEX_HOME to a folder of yours."
        return CheckResult(
            "warning", f"{home} cannot be written: no session is kept", remedy, details
        )
    login = home / "auth.json"
    if login.exists() and login.stat().st_mode & 0o077:
        return CheckResult(
            "warning", "others can read the stored login", f"chmod 600 {login}", details
        )
    return CheckResult("ok", f"{home} can be written", details=details)
