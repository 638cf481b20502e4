"""Confines commands on macOS, by `sandbox-exec` and a profile.

The language of profiles is undocumented; those of the system are in
`/System/Library/Sandbox/Profiles`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.protocol.approval import SandboxLimits
from codex_py.protocol.protected import PROTECTED_NAMES
from codex_py.sandbox.backends.backend import limited
from codex_py.sandbox.layout import Layout, absent_names

_SANDBOX_EXEC = "/usr/bin/sandbox-exec"
"""The fixed path, because on `PATH` the model could put another program first."""

_BASE = """\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow process-info* signal (target same-sandbox))
(allow sysctl-read)
(allow file-read*)
(allow file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl
  (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow ipc-posix-sem ipc-posix-shm*)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.PowerManagement.control"))
(allow user-preference-read)
"""

_NETWORK = """\
(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SecurityServer") (global-name "com.apple.networkd")
  (global-name "com.apple.trustd.agent") (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd"))
"""


class SeatbeltBackend:
    name = "seatbelt"

    def __init__(self, limits: SandboxLimits, program: str = _SANDBOX_EXEC) -> None:
        self._limits = limits
        self._program = program

    def command(
        self,
        argv: Sequence[str],
        view: Layout,
        cwd: Path,  # noqa: ARG002
        alive: str = "",  # noqa: ARG002
    ) -> list[str] | None:
        if not os.access(self._program, os.X_OK):
            return None
        held = limited(argv, self._limits, processes=False)
        return [self._program, "-p", seatbelt_profile(view), "--", *held]


def seatbelt_profile(view: Layout) -> str:
    """Write the profile for a layout. If several rules match, the last one applies.

    Protected names need not exist. They match in upper and lower case, because most disks of macOS
    ignore case.
    """
    rules = [_BASE]
    writable = view.writable
    rules += [f"(allow file-write* {_below(path)})\n" for path in writable]
    # If a root were moved, its protected entries would no longer be at their protected paths.
    rules += [
        f"(deny file-write-unlink (literal {_quoted(path)}))\n" for path in writable
    ]
    absent = (*absent_names(view.roots), *view.absent)
    closed = dict.fromkeys((*view.protected, *view.links, *absent))
    rules += [f"(deny file-write* {_below(path)})\n" for path in closed]
    # The deepest path that contains a file decides, so its rule is the last.
    hidden_or_opened = (*view.hidden, *view.opened)
    for path in sorted(hidden_or_opened, key=lambda path: len(path.parts)):
        if path in view.opened:
            rules.append(f"(allow file-read* {_below(path)})\n")
        else:
            rules.append(f"(deny file-read* file-write* {_below(path)})\n")
    names = "|".join(_pattern(name, any_case=True) for name in PROTECTED_NAMES)
    folders = [path.parent for path in view.roots.protected_names]
    for folder in dict.fromkeys((*view.roots.all, *folders)):
        prefix = "" if folder == Path("/") else _pattern(str(folder))
        rules.append(f'(deny file-write* (regex #"^{prefix}/({names})(/.*)?$"))\n')
    if not view.offline:
        rules.append(_NETWORK)
    return "".join(rules)


def _below(path: Path) -> str:
    """Write a filter for a path and everything below it."""
    return f"(subpath {_quoted(path)})"


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pattern(text: str, *, any_case: bool = False) -> str:
    return "".join(_one(character, any_case=any_case) for character in text)


def _one(character: str, *, any_case: bool) -> str:
    if any_case and character.isalpha():
        return f"[{character.lower()}{character.upper()}]"
    if character.isalnum() or character in "/_-":
        return character
    # Inside brackets, only these three have a meaning. A quote would end the pattern.
    if character in '^\\"':
        return "."
    return f"[{character}]"
