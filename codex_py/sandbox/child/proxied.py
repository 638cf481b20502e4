"""Starts a command whose only way out is the agent's proxy.

The words are those of the launcher. With bubblewrap, this program runs twice instead:

- before bubblewrap, with `out NAME COMMAND...`, it connects to the agent;
- in the network namespace, with `in LOCAL DIRECT COMMAND...`, it listens. `LOCAL` is 1 if the proxy
  allows local hosts, or else 0. `DIRECT` lists the hosts that are reached without the proxy,
  separated by commas.
"""

import _socket
import posix

from codex_py.sandbox.child import kernel, launcher, network
from codex_py.sandbox.child.confinement import FAILED, Confinement, become, say
from codex_py.sandbox.child.kernel import signals

_LINK = 6
"""The descriptor of the link to the agent that bubblewrap passes on."""
_HELD = 7
"""Another descriptor of the link, which bubblewrap holds open: `--sync-fd`."""


def main(words: list[str]) -> None:
    """Run the command, and exit with its exit code."""
    if words[0] not in {"out", "in"}:
        launcher.main(words, confinement_type=ProxiedConfinement)
    # Python itself ignores both.
    for number in (signals.SIGPIPE, signals.SIGXFSZ):
        signals.signal(number, signals.SIG_DFL)
    try:
        if words[0] == "out":
            _, name, *command = words
            _connect(name)
            variables = {}
        else:
            _, local, direct, *command = words
            _listen()
            variables = network.variables(allows_local=local == "1", direct=direct)
    except OSError as error:
        say(f"the command could not be confined (bwrap): {error}")
        kernel.leave(FAILED)
    become(command, variables)


def _connect(name: str) -> None:
    """Connect to the agent, and leave the link to bubblewrap."""
    link = network.connect(name)
    for number in (_LINK, _HELD):
        posix.dup2(link.fileno(), number)


def _listen() -> None:
    """Listen in the network namespace, for the agent."""
    link = _socket.socket(fileno=_LINK)
    network.listen(link)
    link.close()


class ProxiedConfinement(Confinement):
    """Keeps a link to the agent's proxy, which a command in a network namespace reaches."""

    def begin(self) -> None:
        super().begin()
        # Every process but the command inherits and holds the link: when all have ended, the agent
        # notices.
        self._link = network.connect(self.proxy)
        self.variables = network.variables(
            allows_local=self.allows_local, direct=self.direct
        )

    def listen(self) -> None:
        kernel.raise_loopback()
        network.listen(self._link)
