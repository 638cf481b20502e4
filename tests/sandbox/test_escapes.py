"""Every known way out, on every way to hold a command that this machine has.

Tests `sandbox/child/confinement.py`, `sandbox/child/kernel.py`,
`sandbox/child/namespaces.py` and `sandbox/child/path_policy.py`.
"""

import pytest

from codex_py.sandbox.backends.backend import Backend
from tests.sandbox.escapes import ESCAPES, KNOWN_OPEN, Escape, try_escape
from tests.sandbox.local_backends import BACKENDS, Unconfined

# What a kernel may refuse to everyone, and bare privileges of root.
_NOT_FOR_EVERYONE = {
    *(
        "type into the terminal",
        "make a device",
        "mount over .git",
        "unmount",
        "io_uring",
    ),
    *(
        "write to a kernel setting",
        "a user namespace of one's own",
        "read the keys of the kernel",
    ),
    *(
        "trace a process",
        "write through another process",
        "change the flags of a file outside",
    ),
    *("get what is mounted outside later", "change the mode of a device"),
}
# Open or not as the machine has its mounts, and for root or not.
_DEPENDS = {"get what is mounted outside later", "change the mode of a device"}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
def test_nothing_gets_out_that_can_be_held(escape: Escape, backend: Backend) -> None:
    held = escape.name not in KNOWN_OPEN.get(backend.name, ())
    assert try_escape(escape, backend) is held or (escape.name in _DEPENDS and not held)


@pytest.mark.parametrize(
    "escape",
    [escape for escape in ESCAPES if escape.name not in _NOT_FOR_EVERYONE],
    ids=lambda escape: escape.name,
)
def test_the_ways_out_are_open_without_a_sandbox(escape: Escape) -> None:
    assert not try_escape(escape, Unconfined())
