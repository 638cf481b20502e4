"""The probes of `codex-py sandbox --test`. The full battery is in `test_escapes`."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.layout import Layout
from codex_py.sandbox.probes import KNOWN_OPEN, run_probes
from tests.sandbox.local_backends import BACKENDS, Unconfined

# A kernel may refuse this to everyone.
_REFUSED_TO_ALL = "write through another process"


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_backend_holds_what_it_can(backend: Backend) -> None:
    known = KNOWN_OPEN.get(backend.name, set[str]())
    assert run_probes(backend) == {
        name: name not in known for name in run_probes(Unconfined())
    }


def test_without_a_sandbox_every_probe_gets_out() -> None:
    found = run_probes(Unconfined())
    assert len(found) == 10
    assert not any(held for name, held in found.items() if name != _REFUSED_TO_ALL), (
        found
    )
    assert None not in found.values()


class _Interrupted(Unconfined):
    """Ctrl-C reaches the process that a probe is to kill."""

    def command(
        self, argv: Sequence[str], view: Layout, cwd: Path, alive: str = ""
    ) -> list[str] | None:
        is_the_script = argv[-2].isdecimal()
        return (
            ["/bin/sh", "-c", f"sleep 0.5; kill -INT {argv[-2]}"]
            if is_the_script
            else [*argv]
        )


def test_an_interrupt_prints_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    assert set(run_probes(_Interrupted()).values()) == {None}
    assert capfd.readouterr().err == ""
