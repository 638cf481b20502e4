"""Kills what we started when we are killed ourselves.

A signal that cannot be caught leaves no time to clean up, so a child waits for our end of a pipe to
close, which the kernel does however we end.
"""

import os
import subprocess

# `+N`: the leader of group N runs. `=N`: it was reaped, members are left; should a process N exist by
# then, the id is a stranger's. `-N`: nothing is left. At the end of the pipe, all that is listed dies,
# and then, where /proc shows environments, what carries our mark and left its group.
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
    """A child that outlives us by a moment. It is started with the first group, some 1 ms."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._child: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._listed: dict[int, str] = {}

    @property
    def is_running(self) -> bool:
        return self._child is not None

    def start(self) -> None:
        """Make sure that it runs.

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
                # In a session of its own, and without our own environment: where this agent is itself
                # the command of another, that one's guardian must not find this one before its work is done.
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
        """The group is to die with us; its leader runs."""
        self._tell("+", group)

    def leader_reaped(self, group: int) -> None:
        """Of a group that still has members."""
        self._tell("=", group)

    def forget(self, group: int) -> None:
        """Nothing is left of the group."""
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
            # Someone killed it, or stopped it until the pipe was full: a new one is told everything.
            self._stop()
            self.start()
            os.write(
                self._pipe, b"".join(b"%b%d\n" % (s.encode(), g) for g, s in self._listed.items())
            )

    def close(self) -> None:
        """End it; what it watched lives on."""
        self._listed.clear()
        self._stop()

    def _stop(self) -> None:
        if self._child is None:
            return
        # Killed before the pipe closes, so that it takes this for no death of ours.
        self._child.kill()
        self._child.wait()
        os.close(self._pipe)
        self._child, self._pipe = None, -1
