"""What every test starts from: an empty home, an empty working directory, and nothing of the user's settings."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import Workplace

# The processes that run tests side by side start with this. So a file that is opened without an encoding fails
# whoever starts the tests, and not only for `scripts/test`.
os.environ.setdefault("PYTHONWARNDEFAULTENCODING", "1")

# Whoever starts us in the background, such as `nohup` or a script with `&`, may have them ignored. Programs
# under test would inherit that, and could not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

_SETTINGS = ("ANTHROPIC_", "CODEX_", "GIT_", "OPENAI_", "XDG_")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """More than there are processors, because many tests wait for a process or for a time to pass."""
    return max(2, (os.cpu_count() or 1) * 3 // 2)


@pytest.fixture(autouse=True, scope="session")
def hangups_end_programs() -> None:
    """Under `nohup` a hangup does not end the tests, but does end the programs that they start."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # Unlike what is ignored, a handler is not inherited.
        signal.signal(signal.SIGHUP, lambda _number, _frame: None)


@pytest.fixture(autouse=True)
def isolated(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """The home is beside `tmp_path`, which is empty; `CODEX_HOME` is in the home, and not made yet."""
    for name in os.environ:
        if name.startswith(_SETTINGS) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    monkeypatch.chdir(tmp_path)
    yield
    # Every further folder is numbered after a look at all those that are there.
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """An empty home and an empty folder to work in."""
    return Workplace.below(tmp_path)
