"""Tests `execpolicy/decision.py`."""

from pathlib import Path

import pytest

from codex_py.execpolicy.decision import CommandRules, Decision, PrefixRule
from codex_py.execpolicy.place import CommandPlace
from codex_py.tools.shell.permission import allowing, offered_prefix

GIT_FETCH = CommandRules((PrefixRule((("git",), ("fetch",))),))


def offered(script: str, prefix: str, rules: CommandRules = GIT_FETCH) -> bool:
    words = tuple(prefix.split())
    found = offered_prefix(["bash", "-lc", script], words, rules)
    assert found in {None, words}
    return found is not None


@pytest.mark.parametrize(
    ("script", "prefix"),
    [
        ("touch x", "touch"),
        ("npm run build", "npm run"),
        ("npm run build && npm run test", "npm run"),
        ("git fetch; git push", "git push"),
        ("python3 -m pytest -q", "python3 -m pytest"),
        ("sudo apt install x", "sudo apt install"),
        ("env A=1 npm run build", "env A=1 npm run"),
    ],
)
def test_a_rule_that_lets_the_very_call_run_is_offered(
    script: str, prefix: str
) -> None:
    assert offered(script, prefix)


@pytest.mark.parametrize(
    ("script", "prefix"),
    [
        ("npm run build && touch x", "npm run"),
        ("npm run build > log", "npm run"),
        ("npm run $TASK", "npm run"),
        ("npm test", "npm run"),
        ("git fetch", "npm run"),
        ("", "npm"),
        ("npm run build", ""),
    ],
)
def test_a_rule_that_does_not_let_the_call_run_is_not_offered(
    script: str, prefix: str
) -> None:
    assert not offered(script, prefix)


@pytest.mark.parametrize(
    "prefix",
    [
        *(
            "python",
            "python3",
            "python3.11 -c",
            "python3 -W ignore -c",
            "python3 -m",
            "node -e",
        ),
        *(
            "bash",
            "bash -lc",
            "sh -c",
            "/bin/zsh",
            "env",
            "env -i",
            "env A=1",
            "sudo",
            "sudo -E",
        ),
        *(
            "sudo -u root bash",
            "sudo env bash -c",
            "timeout 5",
            "xargs",
            "xargs rm",
            "find .",
            "eval",
        ),
        *("git", "git -C x", "npm", "docker", "rm", "perl -e"),
    ],
)
def test_a_rule_that_would_allow_nearly_anything_is_not_offered(prefix: str) -> None:
    # Read as one program, whatever is behind.
    words = tuple(prefix.split())
    assert offered_prefix([*words, "x"], words, CommandRules()) is None


def test_words_that_do_not_show_are_not() -> None:
    assert offered_prefix(["a\x1b", "b"], ("a\x1b", "b"), CommandRules()) is None


def test_a_stricter_rule_stays_above_it() -> None:
    rules = allowing(
        CommandRules((PrefixRule((("a",), ("c",)), Decision.FORBIDDEN),)), ("a",)
    )
    found = [rules.decide(["a", word]) for word in "bc"]
    assert [match and match.decision for match in found] == [
        Decision.ALLOW,
        Decision.FORBIDDEN,
    ]


def test_no_rule_is_offered_for_a_program_or_script_that_the_model_can_change(
    tmp_path: Path,
) -> None:
    for name in ("gradlew", "x.py"):
        (tmp_path / name).touch(mode=0o755)
    place = CommandPlace(tmp_path, {"PATH": "/usr/bin:/bin"}, (tmp_path,))
    argv = {
        "./gradlew test": ("./gradlew", "test"),
        "env ./gradlew test": ("env", "./gradlew", "test"),
        "python3 x.py": ("python3", "x.py"),
        "cat missing": ("cat", "missing"),
    }
    offers = [
        offered_prefix(script.split(), words, CommandRules(), place)
        for script, words in argv.items()
    ]
    assert offers == [None, None, None, ("cat", "missing")]
