"""Tests `frontends/tui/compose/attachments.py`."""

import os
from pathlib import Path

import pytest

from codex_py.errors import CodexError
from codex_py.frontends.tui.compose.attachments import edited


def editor(folder: Path, script: str) -> list[str]:
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return [str(path)]


def test_the_text_that_an_editor_has_written_is_taken(tmp_path: Path) -> None:
    # Many replace the file instead of writing into it.
    script = 'printf "%s\\r\\nmore\\n\\n" "$(cat "$1")" >"$1.new" && mv "$1.new" "$1"'
    assert (
        edited(editor(tmp_path, script), "text", os.environ, tmp_path) == "text\nmore"
    )


def test_an_editor_that_is_killed_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(
        CodexError, match=r"^editor was killed by signal 15; the text is as it was$"
    ):
        edited(editor(tmp_path, "kill -TERM $$"), "text", os.environ, tmp_path)


@pytest.mark.parametrize("target", ["/proc/self/environ", "/etc/hostname"])
def test_a_link_that_has_come_in_place_of_the_prompt_is_not_followed(
    target: str, tmp_path: Path
) -> None:
    """A command in the background can put it there while the user writes."""
    with pytest.raises(CodexError, match="it is a link that leads out of"):
        edited(editor(tmp_path, f'ln -sf {target} "$1"'), "text", os.environ, tmp_path)
