from typing import Any

import pytest

from codex_py.config.check import Problem, problems, suggestion
from codex_py.config.keymap import CONTEXTS, actions, key_name

# As the released Codex 0.171 takes and refuses them with `--strict-config`.


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ctrl-T", "ctrl-t"),
        ("control-t", "ctrl-t"),
        ("option-t", "alt-t"),
        ("shift-ctrl-a", "ctrl-shift-a"),
        ("alt-shift-up", "alt-shift-up"),
        (" ctrl-a ", "ctrl-a"),
        ("escape", "esc"),
        ("return", "enter"),
        ("del", "delete"),
        ("pgup", "page-up"),
        ("f13", "f13"),
        ("super-t", "super-t"),
        ("ctrl-minus", "ctrl-minus"),
        ("leader t", "leader t"),
        ("ctrl-x  ctrl-e", "ctrl-x ctrl-e"),
    ],
)
def test_a_key_has_one_name_however_it_is_spelled(text: str, name: str) -> None:
    assert key_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "-",
            "ctrl--",
            "ctrl+t",
            "C-t",
            "backtab",
            "ctrl-ctrl-a",
            "insert",
            "f25",
            "\u00fc",
        ),
        *("enter,tab", "hyper-x", "leader", "ctrl-"),
    ],
)
def test_a_text_that_names_no_key_is_refused(text: str) -> None:
    assert key_name(text) is None
    assert problems({"tui": {"keymap": {"list": {"accept": ["enter", text]}}}}) != []


def test_keys_and_actions_of_codex_are_accepted_and_others_are_mistakes() -> None:
    assert {name.partition(".")[0] for name in actions()} == {*CONTEXTS}
    keymap: dict[str, Any] = {
        "global": {"leader": "ctrl-b", "copy": []},
        "vim_normal": {"undo": "u"},
        "composer": {"submit": 5, "sumbit": "enter"},
        "zzz": {},
    }
    place = ("tui", "keymap")
    assert problems({"tui": {"keymap": keymap}}) == [
        Problem(
            (*place, "composer", "submit"),
            "must be a key such as `ctrl-t` or `page-down` or an array, not `5`",
        ),
        Problem((*place, "composer", "sumbit"), "is unknown", unknown=True),
        Problem((*place, "zzz"), "is unknown", unknown=True),
    ]
    assert suggestion((*place, "composer", "sumbit")) == "tui.keymap.composer.submit"
