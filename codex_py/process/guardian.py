"""Kills the commands if the agent itself is killed.

SIGKILL leaves no time to clean up. So a child waits until our end of a pipe closes, which the kernel does however
we end.
"""

import os
import subprocess

# `+N`: the leader of group N runs. `=N`: it was reaped and members are left; if there is a process N at the end,
# the id belongs to a stranger. `-N`: nothing is left. At the end of the pipe, all listed groups are killed, and
# then, if /proc shows environments, every process with our mark, whatever its group.
_SCRIPT = r"""
trap '' HUP INT QUIT TERM
running=' ' orphaned=' '
while read -r line; do
  id=${line#?}
  case $running in *" $id "*) running="${running%% $id *} ${running#* $id }" ;; esac
  case $orphaned in *" $id "*) orphaned="${orphaned%% $id *} ${orphaned#* $id }" ;; esac
  case $line in
    +*) running="$running$id " ;;
    =*) orphaned="$orphaned$id " ;;
  esac
done
for id in $running; do kill -s KILL -- "-$id"; done
for id in $orphaned; do kill -s 0 -- "$id" || kill -s KILL -- "-$id"; done
for round in 1 2 3 4 5; do
  marked=$(grep -lsF -e "$1" /proc/[0-9]*/environ)
  [ -n "$marked" ] || break
  for file in $marked; do id=${file#/proc/}; kill -s KILL -- "${id%/environ}"; done
done
"""


class Guardian:
    """A child that outlives us by a moment. Starting it takes some 1 ms."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._listed: dict[int, str] = {}

    @property
    def is_running(self) -> bool:
        return self._child is not None

    def start(self) -> None:
        """Start it unless it runs.

        Raises:
            OSError: no process or no pipe can be made.
        """
        if self._child is not None:
            return
        read_end, self._pipe = os.pipe()
        try:
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "guardian", self._mark],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # In a session of its own and without our environment: if this agent is itself the command of
                # another agent, the other guardian must not kill this one before its work is done.
                start_new_session=True,
                env={"PATH": os.defpath},
                cwd="/",
            )
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(read_end)
        os.set_blocking(self._pipe, False)

    def watch(self, group: int) -> None:
        """Kill the group if we are killed. Its leader runs."""
        self._tell("+", group)

    def leader_reaped(self, group: int) -> None:
        """Go on watching a group whose leader was reaped and that has other members."""
        self._tell("=", group)

    def forget(self, group: int) -> None:
        """Stop watching the group, of which nothing is left."""
        self._tell("-", group)

    def _tell(self, state: str, group: int) -> None:
        if state == "-":
            self._listed.pop(group, None)
        else:
            self._listed[group] = state
        if self._child is None:
            return
        try:
            os.write(self._pipe, b"%b%d\n" % (state.encode(), group))
        except (BrokenPipeError, BlockingIOError):
            # It was killed, or stopped until the pipe was full: a new one gets the whole list.
            self._stop()
            self.start()
            os.write(
                self._pipe, b"".join(b"%b%d\n" % (s.encode(), g) for g, s in self._listed.items())
            )

    def close(self) -> None:
        """End it without killing what it watches."""
        self._listed.clear()
        self._stop()

    def _stop(self) -> None:
        if self._child is None:
            return
        # Kill it before the pipe closes, or it would take this for our death.
        self._child.kill()
        self._child.wait()
        os.close(self._pipe)
        self._child, self._pipe = None, -1
