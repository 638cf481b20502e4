"""The command line of `bwrap`, where it is installed: https://github.com/containers/bubblewrap

Used where a program without a profile of its own may not make namespaces and bubblewrap may, as on some
Ubuntu. It comes after our own launcher because its monitor dies of the Ctrl-C in a terminal, and takes a
command with it that would have caught that.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.programs import find_program
from codex_py.sandbox.layout import Layout

# The filter comes through a descriptor, and ours are closed when a command starts; so a shell opens it. What
# `bwrap` started goes out through another.
_WITH_FILES = 'info=$1; shift; exec "$@" 9<"$0" 8>"$info"'


def find_bwrap(search_path: str, outside_of: Sequence[Path]) -> str | None:
    """`bwrap` on a `$PATH`, but none that lies where the model can write."""
    found = find_program("bwrap", search_path, outside_of)
    return None if found is None else os.path.realpath(found)


def bwrap_command(
    bwrap: str,
    argv: Sequence[str],
    view: Layout,
    cwd: Path,
    *,
    filter_file: str,
    info_file: str,
    user_namespace: bool,
) -> list[str]:
    """What runs `argv` in the view.

    Args:
        filter_file: that holds the program of `seccomp.filter_program`.
        info_file: to which the number of the first process in it is written, as JSON.
        user_namespace: ordinary users need one. Root may do without, and then keeps to work in folders
            of other users.
    """
    command = ["/bin/sh", "-c", _WITH_FILES, filter_file, info_file, bwrap]
    command += ["--die-with-parent", "--info-fd", "8"]
    command += ["--unshare-user"] if user_namespace else ["--cap-drop", "ALL", *_KEPT]
    command += ["--unshare-pid", "--unshare-ipc"]
    if view.offline:
        command.append("--unshare-net")
    command += ["--bind" if Path("/") in view.writable else "--ro-bind", "/", "/"]
    command += ["--dev", "/dev", "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    for path in view.writable:
        if path != Path("/"):
            command += ["--bind", str(path), str(path)]
    # Read-only: root owns the switches in /proc/sys, and for some of them that is enough.
    command += ["--proc", "/proc", "--remount-ro", "/proc"]
    for path in view.protected:
        command += ["--ro-bind", str(path), str(path)]
    for path in view.hidden:
        if path.is_dir():
            command += ["--tmpfs", str(path), "--remount-ro", str(path)]
        else:
            # A device cannot be opened through such a mount.
            command += ["--ro-bind", os.devnull, str(path)]
    return [*command, "--chdir", os.path.realpath(cwd), "--seccomp", "9", "--", *argv]


_KEPT = ("--cap-add", "CAP_DAC_OVERRIDE")
