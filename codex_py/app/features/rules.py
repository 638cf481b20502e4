"""What the rules about commands say in a session."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.execpolicy.decision import Rules
from codex_py.execpolicy.rules import load_rules, parse_rules


def session_rules(folders: Sequence[Path], project: Mapping[Path, str]) -> Rules:
    """The rules of all files in the folders, and then those of a project, by the path of their file.

    Raises:
        ConfigError: a file of rules cannot be read, or is wrong.
    """
    rules = load_rules(folders)
    for path, text in project.items():
        rules = parse_rules(text, str(path), rules)
    return rules
