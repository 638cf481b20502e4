"""Tests `frontends/app_server/turn_items/command_actions.py`. The actions are those of Codex 0.171."""

from typing import Any

import pytest

from codex_py.frontends.app_server.turn_items.command_actions import command_actions


def read(command: str, path: str) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    return {"type": "read", "command": command, "name": name, "path": path}


@pytest.mark.parametrize(
    ("script", "actions"),
    [
        ("cat a.txt", [read("cat a.txt", "/w/a.txt")]),
        ("sed -n 1,5p a.txt", [read("sed -n 1,5p a.txt", "/w/a.txt")]),
        ("cat /etc/hosts", [read("cat /etc/hosts", "/etc/hosts")]),
        ("cd sub && cat ../b", [read("cat ../b", "/w/b")]),
        (
            "cat a.txt && ls",
            [
                read("cat a.txt", "/w/a.txt"),
                {"type": "listFiles", "command": "ls", "path": None},
            ],
        ),
        ("ls -la", [{"type": "listFiles", "command": "ls -la", "path": None}]),
        (
            "grep -rn one a.txt | head -3",
            [
                {
                    "type": "search",
                    "command": "grep -rn one a.txt",
                    "query": "one",
                    "path": "a.txt",
                }
            ],
        ),
        (
            "rg -n --hidden 'a b' .",
            [
                {
                    "type": "search",
                    "command": "rg -n --hidden 'a b' .",
                    "query": "a b",
                    "path": ".",
                }
            ],
        ),
    ],
)
def test_commands_that_look_at_files(
    script: str, actions: list[dict[str, Any]]
) -> None:
    assert command_actions(script, "/w") == actions


@pytest.mark.parametrize(
    "script",
    [
        "git status",
        "make && cat a.txt",
        # Which of them is shown?
        "cat a.txt b.txt",
        "cd ~ && cat a.txt",
        # The value of an option is neither what is searched for nor a place.
        "rg -g '*.py' one",
        "grep --include *.py one .",
    ],
)
def test_other_commands_are_unknown(script: str) -> None:
    assert command_actions(script, "/w") == [{"type": "unknown", "command": script}]
