import sys
from pathlib import Path

import pytest

from codex_py.app.loading import load

FORGETS = """
import signal, threading
try:
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
except KeyboardInterrupt:
    pass
value = 1
"""


def test_an_interrupt_in_an_import_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "forgetful.py").write_text(FORGETS, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(KeyboardInterrupt):
        load("forgetful:value")
    assert sys.modules.pop("forgetful").value == 1
