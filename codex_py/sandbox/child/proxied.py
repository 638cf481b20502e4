"""Starts a command whose only way out is the agent's proxy.

The words are those of the launcher. With bubblewrap, this program runs before and after it, with
these words:

out NAME COMMAND...      before: connects to the agent
in LOCAL DIRECT COMMAND...      after, in the network namespace: listens. LOCAL is 1 or 0;
    DIRECT lists the hosts that are reached without the proxy, separated by commas
"""

import _socket
import posix

from codex_py.sandbox.child import kernel, launcher, network
from codex_py.sandbox.child.confinement import FAILED, Confinement, become, say
from codex_py.sandbox.child.kernel import signals

_LINK = 6
_HELD = 7
"""Descriptors that are not used otherwise on bubblewrap's command line: it passes `_LINK` on, and
holds `_HELD`."""


def main(words: list[str]) -> None:
    if words[0] not in {"out", "in"}:
        launcher.main(words, confinement_type=ProxiedConfinement)
    side, what, *command = words
    more: dict[bytes, bytes] = {}
    # Python itself ignores both.
    for number in (signals.SIGPIPE, signals.SIGXFSZ):
        signals.signal(number, signals.SIG_DFL)
    try:
        if side == "out":
            link = network.connect(what)
            for number in (_LINK, _HELD):
                posix.dup2(link.fileno(), number)
        else:
            link = _socket.socket(fileno=_LINK)
            network.listen(link)
            link.close()
            direct, *command = command
            more = network.variables(allows_local=what == "1", direct=direct)
    except OSError as error:
        say(f"the command could not be confined (bwrap): {error}")
        kernel.leave(FAILED)
    become(command, more)


class ProxiedConfinement(Confinement):
    def begin(self) -> None:
        super().begin()
        # Every process but the command keeps the link open: when all have ended, the agent notices.
        self._link = network.connect(self.proxy)
        self.variables = network.variables(
            allows_local=self.allows_local, direct=self.direct
        )

    def listen(self) -> None:
        kernel.raise_loopback()
        network.listen(self._link)
