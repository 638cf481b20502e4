"""A wire of a package that is wrong: one sentence tells it, and the session stays whole."""

from pathlib import Path

import pytest

from tests.app.test_installed_wires import answers, install
from tests.support.packages import run_with
from tests.support.program import Workplace
from tests.support.tcp_server import tcp_server

WIRE = """
from codex_py.api.wires import Completed, FunctionCall, OutputItemDone, ProfiledWire, Usage

class Decoder:
    finished = False

    def feed(self, data, name="message"):
        self.finished = True
        call = FunctionCall(call_id="c", name="exec_command", arguments={"cmd": "ls"})
        return [OutputItemDone(0, call), Completed(Usage(1, output_tokens=1))]

    def end(self):
        return []

class PlainWire(ProfiledWire):
    path = "/plain"

    def body(self, prompt):
        return b"{}"

    def decoder(self, prompt):
        return Decoder()
"""
EXEC = ("exec", "--skip-git-repo-check", "go")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    install(folder, WIRE)
    return folder


def configure(place: Workplace, address: str, wire: str = "plain") -> None:
    text = 'model = "m"\nmodel_provider = "mine"\n[model_providers.mine]\nname = "m"\n'
    text += f'base_url = "{address}"\nwire_api = "{wire}"\n'
    (place.home / "config.toml").write_text(text, encoding="utf-8")


def test_a_wrong_call_ends_the_turn_and_is_not_kept(
    place: Workplace, packages: Path
) -> None:
    with tcp_server(answers("{}")) as (address, requests):
        configure(place, address)
        done = run_with(packages, place, *EXEC)
    told = done.stderr.decode()
    assert done.returncode == 1, told
    assert len(requests) == 1
    bug = (
        "internal error: the wire 'plain' (codex_py_plain:PlainWire): `feed` returned a wrong"
        " FunctionCall: invalid value"
    )
    assert bug in told
    assert "Traceback" in told
    (session,) = place.home.glob("sessions/**/*.jsonl")
    assert b"function_call" not in session.read_bytes()
    shown = run_with(packages, place, "sessions", "show", "--last")
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"damaged" not in run_with(packages, place, "doctor").stdout


def test_a_wire_that_cannot_begin_is_one_sentence(
    place: Workplace, packages: Path
) -> None:
    module = packages / "codex_py_plain.py"
    module.write_text(WIRE.replace('"/plain"', '"plain"'), encoding="utf-8")
    configure(place, "http://127.0.0.1:9")
    done = run_with(packages, place, *EXEC)
    told = done.stderr.decode()
    assert done.returncode == 78, told
    assert (
        "the wire 'plain' (codex_py_plain:PlainWire) cannot be used: `path` is" in told
    )
    assert told.count("\n") == 1
