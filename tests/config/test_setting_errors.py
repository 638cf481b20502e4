"""Also covered by `test_layers.py`, where the whole program refuses."""

import subprocess
import sys

from codex_py.config.check import Problem
from codex_py.config.setting_errors import refusal


def test_a_name_with_quotes_is_one_word_of_a_shell() -> None:
    problem = Problem(("gates", "it's"), "is unknown", unknown=True)
    text = refusal(problem, "config.toml:2", may_accept=True)
    word = text.partition(" pass -c ")[2]
    script = f"printf %s {word}"
    shown = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True)
    assert shown.stdout.decode() == r'allow_unenforced=["gates.\"it' + "'" + r's\""]'


def test_a_value_of_another_type_cannot_be_accepted() -> None:
    problem = Problem(("model",), "must be a text, not `1`")
    text = refusal(problem, "-c", may_accept=True)
    assert text == "Error loading config.toml: -c: `model` must be a text, not `1`"


def test_an_unknown_key_that_cannot_be_accepted_has_a_hint_alone() -> None:
    problem = Problem(("modle",), "is unknown", unknown=True)
    text = refusal(problem, "-c", may_accept=False)
    assert text.endswith("`modle` is unknown; did you mean `model`?")


def test_it_is_loaded_by_an_error_alone() -> None:
    script = (
        "import sys, codex_py.config.config; print('codex_py.config.setting_errors' in sys.modules,"
        " 'shlex' in sys.modules)"
    )
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, capture_output=True, check=True)
    assert shown.stdout.split() == [b"False", b"False"]
