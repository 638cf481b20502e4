"""Tests `app/agents_md.py`."""

from pathlib import Path

import pytest

from codex_py.app.agents_md import with_imports


def imported(root: Path, text: str, max_bytes: int = 10_000) -> tuple[str, list[str]]:
    """What is added to an AGENTS.md in `root/docs`, and the warnings."""
    path = root / "docs" / "AGENTS.md"
    path.write_text(text, encoding="utf-8")
    content, size, warnings = with_imports(path, text.encode(), root, max_bytes)
    assert len(content) == min(size, max_bytes)
    assert content.startswith(text.encode())
    return content.decode()[len(text) :], warnings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "docs" / "more").mkdir(parents=True)
    for name in ("style.md", "more/a b.md", "../README", "last.md"):
        (folder / "docs" / name).write_text(
            f"text of {Path(name).name}\n", encoding="utf-8"
        )
    return folder


def test_the_files_that_a_document_names_are_added_behind_it(root: Path) -> None:
    text, warnings = imported(
        root,
        "See @style.md, and\n- @../README\n(@more/a\\ b.md) and @./style.md. Ask @alice, me@last.md",
    )
    assert text == (
        f"\n\n--- {root}/docs/style.md ---\n\ntext of style.md\n"
        f"\n\n--- {root}/README ---\n\ntext of README\n"
        f"\n\n--- {root}/docs/more/a b.md ---\n\ntext of a b.md\n"
    )
    assert warnings == []


def test_code_and_folders_are_no_imports(root: Path) -> None:
    text = "`@style.md` ``a ` @style.md``\n```sh\n@style.md\n~~~\n```\n~~~~ x\n@style.md\n~~~~\n@more"
    assert imported(root, text) == ("", [])


def test_imports_import_five_deep_and_in_no_circle(root: Path) -> None:
    for number in range(1, 8):
        path = root / "docs" / "more" / f"{number}.md"
        path.write_text(f"{number} @{number + 1}.md @../AGENTS.md\n", encoding="utf-8")
    text, warnings = imported(root, "@more/1.md")
    assert [line[0] for line in text.splitlines() if "@" in line] == list("12345")
    assert warnings == [
        f"{root}/docs/more/5.md cannot import @6.md: imports are at most 5 deep."
    ]


def test_imports_share_the_bytes_of_their_document(root: Path) -> None:
    text, _ = imported(root, "@style.md @last.md", 80 + len(str(root)))
    assert "text of style.md\n\n\n--- " in text
    assert "text of last.md" not in text


def test_nothing_outside_of_the_root_is_imported(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root.parent))
    secret = root.parent / "secret.md"
    secret.write_text("secret", encoding="utf-8")
    (root / "docs" / "link.md").symlink_to(secret)
    (root / "docs" / "folder").symlink_to(root.parent)
    (root / ".env").write_text("KEY=1", encoding="utf-8")
    (root / "docs" / "env.md").symlink_to("../.env")
    (root / "docs" / "image.png").write_bytes(b"\x89PNG\0")
    names = [
        "~/secret.md",
        "../../secret.md",
        str(secret),
        "link.md",
        "folder/secret.md",
    ]
    text, warnings = imported(
        root,
        " ".join(f"@{name}" for name in (*names, "../.env", "env.md", "image.png")),
    )
    assert text == ""
    outside, link = f"it is outside of {root}", f"it is a link that leads out of {root}"
    hidden = "it is a hidden file"
    not_text = "it is binary, or UTF-16 without a byte order mark"
    reasons = [outside, outside, outside, link, link, hidden, hidden, not_text]
    assert [warning.rpartition(": ")[2] for warning in warnings] == [
        f"{why}." for why in reasons
    ]
    assert warnings[0].startswith(f"{root}/docs/AGENTS.md cannot import @~/secret.md: ")
