import os
from pathlib import Path

import pytest

from codex_py.app.agents_md import AgentsMd, agents_md


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, ...]:
    root = tmp_path / "repo"
    (root / "a" / "b").mkdir(parents=True)
    return root, root / "a", root / "a" / "b"


def write(folder: Path, text: str, name: str = "AGENTS.md") -> None:
    (folder / name).write_bytes(text.encode())


def test_there_may_be_nothing_to_say(home: Path, folders: tuple[Path, ...]):
    assert agents_md(home=home, folders=folders, max_bytes=100) == AgentsMd(None)


def test_texts_are_laid_out_as_codex_does(home: Path, folders: tuple[Path, ...]):
    # Layout observed with Codex 0.169: the user's text is trimmed, those of the project are not.
    write(home, "  \nglobal\n\n")
    assert agents_md(home=home, folders=folders, max_bytes=100).text == (
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nglobal\n</INSTRUCTIONS>"
    )
    write(folders[0], "root")
    write(folders[2], "nearest\n\n")
    assert agents_md(home=home, folders=folders, max_bytes=100).text == (
        f"# AGENTS.md instructions for {folders[2]}\n\n<INSTRUCTIONS>\nglobal\n\n"
        "--- project-doc ---\n\nroot\n\nnearest\n\n\n</INSTRUCTIONS>"
    )
    (home / "AGENTS.md").unlink()
    assert agents_md(home=home, folders=folders, max_bytes=100).text == (
        f"# AGENTS.md instructions for {folders[2]}\n\n<INSTRUCTIONS>\n"
        "root\n\nnearest\n\n\n</INSTRUCTIONS>"
    )


def test_each_folder_gives_one_file(home: Path, folders: tuple[Path, ...]):
    write(folders[0], "override", "AGENTS.override.md")
    write(folders[0], "hidden")
    write(folders[1], "fallback", "CLAUDE.md")
    write(folders[2], "plain")
    write(folders[2], "hidden", "CLAUDE.md")
    found = agents_md(
        home=home,
        folders=folders,
        max_bytes=100,
        fallback_filenames=("RULES.md", "CLAUDE.md"),
    )
    assert found.text is not None
    assert "\noverride\n\nfallback\n\nplain\n</INSTRUCTIONS>" in found.text


def test_a_blank_file_says_nothing_and_in_a_project_silences_the_next(
    home: Path, folders: tuple[Path, ...]
):
    write(home, " \n", "AGENTS.override.md")
    write(home, "global")
    write(folders[0], "\ufeff \n", "AGENTS.override.md")
    write(folders[0], "hidden")
    assert agents_md(home=home, folders=folders, max_bytes=100).text == (
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nglobal\n</INSTRUCTIONS>"
    )


def test_the_nearest_file_is_the_last_to_be_cut(home: Path, folders: tuple[Path, ...]):
    write(folders[0], "r" * 50)
    write(folders[1], "a" * 10 + "é" * 10)
    write(folders[2], "b" * 40)
    found = agents_md(home=home, folders=folders, max_bytes=53)
    left_out = f"{folders[0]}/AGENTS.md was left out for its size of 50 bytes"
    cut = f"Only the first 13 of 30 bytes of {folders[1]}/AGENTS.md were loaded"
    limit = "project_doc_max_bytes is used up"
    assert found == AgentsMd(
        f"# AGENTS.md instructions for {folders[2]}\n\n<INSTRUCTIONS>\n"
        f"[{left_out}: {limit}]\n\n\n{'a' * 10}é\n[{cut}: {limit}]\n\n\n{'b' * 40}\n</INSTRUCTIONS>",
        (f"{cut}: {limit}.", f"{left_out}: {limit}."),
    )


def test_a_bound_of_zero_turns_project_files_off(home: Path, folders: tuple[Path, ...]):
    write(home, "global")
    write(folders[2], "project")
    assert agents_md(home=home, folders=folders, max_bytes=0) == AgentsMd(
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nglobal\n</INSTRUCTIONS>"
    )


def test_the_users_own_file_has_a_bound_as_well(home: Path, folders: tuple[Path, ...]):
    write(home, "x" * 300_000)
    found = agents_md(home=home, folders=folders, max_bytes=100)
    assert found.text is not None
    assert len(found.text) < 263_000
    assert found.warnings == (
        f"Only the first 262144 of 300000 bytes of {home}/AGENTS.md were loaded.",
    )


def test_bytes_that_are_no_text_are_replaced(home: Path, folders: tuple[Path, ...]):
    (folders[2] / "AGENTS.md").write_bytes(b"a\xffb")
    found = agents_md(home=home, folders=folders, max_bytes=100)
    assert found.text is not None
    assert "a\ufffdb" in found.text


def test_an_unreadable_agents_md_is_a_warning(home: Path, folders: tuple[Path, ...]):
    loop = folders[0] / "AGENTS.md"
    loop.symlink_to(loop)
    (folders[1] / "AGENTS.md").mkdir()
    os.mkfifo(folders[2] / "AGENTS.override.md")
    write(folders[2], "plain")
    found = agents_md(home=home, folders=folders, max_bytes=100)
    assert found == AgentsMd(
        f"# AGENTS.md instructions for {folders[2]}\n\n<INSTRUCTIONS>\nplain\n</INSTRUCTIONS>",
        (
            f"{loop} cannot be read: it is a link where a file should be.",
            f"{folders[1]}/AGENTS.md cannot be read: it is a folder.",
            f"{folders[2]}/AGENTS.override.md cannot be read: it is a named pipe.",
        ),
    )


def test_no_file_of_a_project_leads_out_of_it(home: Path, folders: tuple[Path, ...]):
    (home / "key").write_text("SECRET", encoding="utf-8")
    (folders[0] / "AGENTS.md").symlink_to(home / "key")
    (folders[1] / "AGENTS.md").symlink_to("/proc/self/environ")
    (folders[2] / "AGENTS.override.md").symlink_to("../../real.md")
    write(folders[0], "shared", "real.md")
    found = agents_md(home=home, folders=folders, max_bytes=100_000)
    assert found.text is not None
    assert "\nshared\n" in found.text
    assert "SECRET" not in found.text
    assert "PATH=" not in found.text
    assert found.warnings == tuple(
        f"{folder}/AGENTS.md cannot be read: it is a link that leads out of {folders[0]}."
        for folder in folders[:2]
    )


def test_the_users_own_file_may_be_a_link(
    home: Path, folders: tuple[Path, ...], tmp_path: Path
):
    (tmp_path / "dotfiles.md").write_text("mine", encoding="utf-8")
    (home / "AGENTS.md").symlink_to(tmp_path / "dotfiles.md")
    found = agents_md(home=home, folders=folders, max_bytes=100)
    assert found == AgentsMd(
        "# AGENTS.md instructions\n\n<INSTRUCTIONS>\nmine\n</INSTRUCTIONS>"
    )


def test_a_folder_or_a_link_to_nowhere_is_told(home: Path, folders: tuple[Path, ...]):
    (folders[0] / "AGENTS.md").mkdir()
    (folders[1] / "AGENTS.md").symlink_to("gone.md")
    assert agents_md(home=home, folders=folders, max_bytes=100) == AgentsMd(
        None,
        (
            f"{folders[0]}/AGENTS.md cannot be read: it is a folder.",
            f"{folders[1]}/AGENTS.md cannot be read: it is a link that leads nowhere.",
        ),
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["AGENTS.md", "AGENTS.override.md", "CLAUDE.md"])
def test_a_byte_order_mark_names_the_encoding(
    home: Path, folders: tuple[Path, ...], encoding: str, name: str
):
    (folders[0] / "style.md").write_bytes("Größe".encode(encoding))
    (folders[0] / name).write_bytes("Use café.\n@style.md".encode(encoding))
    found = agents_md(
        home=home, folders=folders, max_bytes=1000, fallback_filenames=["CLAUDE.md"]
    )
    assert found.warnings == ()
    assert found.text is not None
    imported = f"--- {folders[0] / 'style.md'} ---\n\nGröße"
    assert f"\nUse café.\n@style.md\n\n{imported}\n</INSTR" in found.text


def test_bytes_that_are_no_text_are_a_warning_and_the_rest_is_used(
    home: Path, folders: tuple[Path, ...]
):
    (home / "AGENTS.md").write_bytes(b"mine\n\x93x\x94")
    (folders[0] / "AGENTS.md").write_bytes(b"a\ncaf\xe9\n@style.md")
    (folders[0] / "style.md").write_bytes("Größe".encode("cp1252"))
    (folders[1] / "AGENTS.md").write_bytes("Use café.".encode("utf-16")[:-1])
    found = agents_md(home=home, folders=folders, max_bytes=1000)
    assert found.text is not None
    for part in (
        "mine\n\ufffdx\ufffd",
        "a\ncaf\ufffd",
        "Gr\ufffd\ufffde",
        "Use café\ufffd",
    ):
        assert part in found.text
    places = [
        (home / "AGENTS.md", "UTF-8 (invalid byte at offset 5, in line 2)"),
        (folders[0] / "AGENTS.md", "UTF-8 (invalid byte at offset 5, in line 2)"),
        (folders[0] / "style.md", "UTF-8 (invalid byte at offset 2, in line 1)"),
        (folders[1] / "AGENTS.md", "UTF-16-LE (invalid byte at offset 18, in line 1)"),
    ]
    assert list(found.warnings) == [
        f"A part of {path} cannot be read: it is not valid {fault}; save it as UTF-8."
        for path, fault in places
    ]


def test_a_file_with_nul_characters_is_left_out(home: Path, folders: tuple[Path, ...]):
    (home / "AGENTS.md").write_bytes("mine".encode("utf-16-be"))
    (folders[0] / "AGENTS.override.md").write_bytes(b"\x89PNG\n\0")
    write(folders[0], "root")
    found = agents_md(home=home, folders=folders, max_bytes=1000)
    assert found.text is not None
    assert "\nroot\n</INSTR" in found.text
    assert "mine" not in found.text
    general, project = found.warnings
    reason = "it is binary, or UTF-16 without a byte order mark."
    assert general.startswith(
        f"{home / 'AGENTS.md'} cannot be read: it holds NUL characters"
    )
    assert project.startswith(
        f"{folders[0] / 'AGENTS.override.md'} cannot be read: it holds NUL"
    )
    assert general.endswith(reason)
    assert project.endswith(f"the first in line 2: {reason}")


def test_a_cut_in_another_encoding_goes_between_characters(
    home: Path, folders: tuple[Path, ...]
):
    (folders[0] / "AGENTS.md").write_bytes("ééééé".encode("utf-16"))
    found = agents_md(home=home, folders=folders, max_bytes=7)
    assert found.text is not None
    assert "\néé\n[Only the first 4 of 12 bytes" in found.text
    assert len(found.warnings) == 1
