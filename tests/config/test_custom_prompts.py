from pathlib import Path

import pytest

from codex_py.config.custom_prompts import (
    claude_expanded,
    expanded,
    find_custom_prompts,
)
from codex_py.errors import CodexError
from tests.config.conftest import Place
from tests.support.plugins import installed


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Fix $1 and $2.", "'a b' c", "Fix a b and c."),
        ("All: $ARGUMENTS", "a 'b c' d", "All: a b c d"),
        ("$FILE for $USER", "USER=me FILE='x y'", "x y for me"),
        ("$9 costs $$5, not $10 or $x", "", " costs $5, not $10 or $x"),
        ("$1", "OTHER=1", "OTHER=1"),
    ],
)
def test_arguments_are_put_in_their_places(
    template: str, arguments: str, text: str
) -> None:
    assert expanded(template, arguments) == text


@pytest.mark.parametrize(
    ("arguments", "said"), [("", "give it FILE=…"), ("'open", "cannot be read")]
)
def test_missing_arguments_of_a_custom_prompt_are_reported(
    arguments: str, said: str
) -> None:
    with pytest.raises(CodexError, match=said):
        expanded("$FILE", arguments)


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Fix $1 and $2, not $10 or $3.", "'a b' c", "Fix a b and c, not $10 or ."),
        (
            "Fix: $ARGUMENTS in $HOME for $$5",
            "don't  stop",
            "Fix: don't  stop in $HOME for $$5",
        ),
        ("Fix $2.", "don't stop", "Fix stop."),
        ("Fix it.\n", "all of it", "Fix it.\n\nARGUMENTS: all of it"),
        ("Fix it.\n", "", "Fix it.\n"),
    ],
)
def test_arguments_of_claudes_commands_are_filled_in(
    template: str, arguments: str, text: str
) -> None:
    assert claude_expanded(template, arguments) == text


def write(path: Path, text: str = "Do it.") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def names(place: Place) -> list[str]:
    return [
        prompt.name
        for prompt in find_custom_prompts(place.load(), place.environment).found
    ]


def test_prompts_are_found_where_codex_and_claude_code_keep_them(place: Place) -> None:
    place.trusted()
    write(place.cwd / ".claude/commands/near.md")
    write(place.root / ".claude/commands/git/tidy.md")
    write(place.home.parent / ".claude/commands/mine.md")
    write(place.home / "prompts/own.md")
    write(place.home / "prompts/sub/never.md")
    write(place.home / "prompts/no name.md")
    installed(place.home, {"commands/run.md": "Run."})
    assert names(place) == [
        *("project:near", "project:git:tidy", "user:mine", "prompts:own", "tools:run")
    ]


def test_the_nearest_of_two_prompts_of_one_name_is_taken(place: Place) -> None:
    place.trusted()
    write(place.cwd / ".claude/commands/a.md", "near")
    write(place.root / ".claude/commands/a.md", "far")
    (found,) = find_custom_prompts(place.load(), place.environment).found
    assert found.text == "near"


def test_prompts_of_a_project_that_is_not_trusted_are_not_found(place: Place) -> None:
    write(place.root / ".claude/commands/a.md")
    assert names(place) == []


def test_no_link_leads_out_of_the_project(place: Place, tmp_path: Path) -> None:
    place.trusted()
    write(tmp_path / "secret.md", "secret")
    folder = place.root / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "proc.md").symlink_to("/proc/self/environ")
    (folder / "folder").symlink_to(tmp_path)
    (place.cwd / ".claude").symlink_to(tmp_path / "other")
    write(tmp_path / "other" / "commands" / "b.md")
    prompts = find_custom_prompts(place.load(), place.environment)
    assert prompts.found == ()
    reason = f"it is a link that leads out of {place.root}."
    assert sorted(prompts.warnings) == [
        f"{folder}/folder is not searched for commands: {reason}",
        f"{place.cwd}/.claude/commands is not searched for commands: {reason}",
        f"The command /project:out cannot be used: {folder}/out.md cannot be read: {reason}",
        f"The command /project:proc cannot be used: {folder}/proc.md cannot be read: {reason}",
    ]


def test_a_broken_prompt_is_told_with_file_and_line(place: Place) -> None:
    write(path := place.home / "prompts" / "a.md", "---\ndescription: x\nbad\n---\n")
    (place.home / "prompts" / "b.md").write_bytes(b"\xff")
    (place.home / "prompts" / "c.md").write_bytes(b"x" * 300_000)
    prompts = find_custom_prompts(place.load(), place.environment)
    assert prompts.found == ()
    first, second, third = prompts.warnings
    assert first.startswith(f"The command /prompts:a cannot be used: {path}:3: ")
    assert second.endswith(
        "b.md cannot be read: it is not valid UTF-8 (invalid byte at offset 0, in line 1)."
    )
    assert third.endswith("c.md cannot be read: it is larger than 256 KiB.")


def test_the_fields_of_claudes_commands_are_read(place: Place) -> None:
    head = "description: Tidy\nargument-hint: [what]\nallowed-tools: Bash(git:*)\nmodel: gpt-5.5"
    write(
        place.home.parent / ".claude/commands/tidy.md",
        f"---\n{head}\n---\nSee !`git status`, @a.\n",
    )
    write(
        place.home.parent / ".claude/commands/same.md", "---\nmodel: sonnet\n---\nDo.\n"
    )
    same, tidy = find_custom_prompts(place.load(), place.environment).found
    assert (tidy.description, tidy.argument_hint, tidy.model) == (
        "Tidy",
        "[what]",
        "gpt-5.5",
    )
    assert tidy.without_effect == (
        "`allowed-tools`, as no file can approve calls",
        "commands as !`COMMAND`, which are sent as text",
    )
    assert (same.model, same.without_effect) == (None, ())
    assert tidy.filled("") == "See !`git status`, @a."
