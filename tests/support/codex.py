"""The released Codex, where it is installed."""

import os
from pathlib import Path

import pytest


def _program() -> str | None:
    """What `CODEX_BINARY` names. In place of the script that npm installs, the program that it starts: Node reads arguments
    as UTF-8, and passes other bytes on changed."""
    named = os.environ.get("CODEX_BINARY")
    if named is None:
        return None
    script = Path(named).resolve()
    beside = script.parents[2] if script.suffix == ".js" else script
    return next((str(path) for path in beside.glob("codex-*/vendor/*/bin/codex")), named)


CODEX = _program()
needs_codex = pytest.mark.skipif(CODEX is None, reason="CODEX_BINARY names no Codex")
