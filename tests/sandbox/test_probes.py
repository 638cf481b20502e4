"""The probes of `codex-py sandbox --test`. The full battery is in `test_escapes`."""

import pytest

from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.probes import KNOWN_OPEN, run_probes
from tests.sandbox.local_backends import BACKENDS, Unconfined

# A kernel may refuse this to everyone.
_REFUSED_TO_ALL = "write through another process"


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_backend_holds_what_it_can(backend: Backend) -> None:
    known = KNOWN_OPEN.get(backend.name, set[str]())
    assert run_probes(backend) == {name: name not in known for name in run_probes(Unconfined())}


def test_without_a_sandbox_every_probe_gets_out() -> None:
    found = run_probes(Unconfined())
    assert len(found) == 10
    assert not any(held for name, held in found.items() if name != _REFUSED_TO_ALL), found
    assert None not in found.values()
