"""Tests `app/providers/findings.py`."""

from dataclasses import replace
from pathlib import Path

import pytest

from codex_py.app.providers.findings import fitted, remember
from codex_py.model.providers import resolve_provider

GROQ = resolve_provider("groq", {})


def test_findings_belong_to_the_model_and_the_address_that_were_tried(
    tmp_path: Path,
) -> None:
    remember(
        GROQ, "a", tmp_path, {"tools": False, "freeform tools": False}, "2026-11-22"
    )
    remember(GROQ, "b", tmp_path, {"tools": True}, "2026-11-22")
    found = fitted(GROQ, "a", tmp_path, {})
    assert (found.profile.tools, found.profile.function_tools_only) == ("text", True)
    assert found.warning is not None
    assert "'a' could not call tools" in found.warning
    elsewhere = replace(GROQ, base_url="http://127.0.0.1:1/v1")
    for provider, model in ((GROQ, "b"), (GROQ, "c"), (elsewhere, "a")):
        assert fitted(provider, model, tmp_path, {}) == provider
    assert fitted(GROQ, "a", tmp_path, {"tools": "native"}).profile.tools == "native"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"groq": 1}', '{"groq": {"a": [1]}}', "[" * 100_000]
)
def test_a_damaged_memory_is_no_memory(tmp_path: Path, text: str) -> None:
    path = tmp_path / "codex-py" / "providers.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert fitted(GROQ, "a", tmp_path, {}) == GROQ
    remember(GROQ, "a", tmp_path, {"tools": False}, "2026-11-22")
    assert fitted(GROQ, "a", tmp_path, {}).profile.tools == "text"
