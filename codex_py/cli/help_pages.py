"""The help texts of the program's commands: files in `help_texts/`, with the lines of extensions."""

from pathlib import Path
from typing import Final

from codex_py.cli.commands import find_command
from codex_py.registry import own_texts

_HELP_TEXTS: Final = Path(__file__).with_name("help_texts")


def help_text(word: str) -> str:
    """Read the help text of a command, with the lines that extensions add to it.

    If the command has no text, return the list of all commands.
    """
    name = "top"
    command = find_command(word)
    if command is not None and (_HELP_TEXTS / f"{command.names[0]}.txt").exists():
        name = command.names[0]
    text = (_HELP_TEXTS / f"{name}.txt").read_text(encoding="utf-8")
    for addition in own_texts(f"help/{name}.txt"):
        text = _joined(text, addition)
    return text


def _joined(text: str, addition: str) -> str:
    """Add lines to a help text.

    The sections of the addition, each below its heading, go to the end of the sections with the same
    headings. Other sections come before the paragraph with `--help`.
    """
    paragraphs = text.split("\n\n")
    for section in addition.rstrip("\n").split("\n\n"):
        heading, _, lines = section.partition("\n")
        at = [each.partition("\n")[0] for each in paragraphs]
        if heading in at:
            place = at.index(heading)
            paragraphs[place] = f"{paragraphs[place]}\n{lines}"
        else:
            common = [each for each in paragraphs if "  -h, --help" in each]
            paragraphs.insert(paragraphs.index(common[-1]), section)
    return "\n\n".join(paragraphs)
