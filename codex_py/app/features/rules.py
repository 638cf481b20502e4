"""The rules for the commands of a session."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.execpolicy.decision import Rules
from codex_py.execpolicy.rules import load_rules, parse_rules


def session_rules(folders: Sequence[Path], project: Mapping[Path, str]) -> Rules:
    """Load the rules of all files in the folders, then those of a project: the text of each file by its path.

    Raises:
        ConfigError: a rules file cannot be read or parsed.
    """
    rules = load_rules(folders)
    for path, text in project.items():
        rules = parse_rules(text, str(path), rules)
    return rules
