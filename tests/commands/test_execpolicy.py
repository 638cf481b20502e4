"""`codex-py execpolicy check`, the real program. Outputs and codes are those of Codex 0.169, save where it is said.

Tests `commands/explain.py`.
"""

import json
from pathlib import Path

import pytest

from codex_py.cli.help_pages import help_text
from tests.support.program import run_codex_py

RULES = """\
host_executable(name="git", paths=["/usr/bin/git"])
prefix_rule(pattern=["git", "push"], decision="prompt")
prefix_rule(pattern=["ls"])
prefix_rule(pattern=["rm"], decision="forbidden", justification="use `trash`")
"""
PUSH = '{"matchedPrefix":["git","push"],"decision":"prompt"}'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "a.rules").write_text(RULES, encoding="utf-8")
    (tmp_path / "b.rules").write_text(
        'prefix_rule(["git", ["push"]])', encoding="utf-8"
    )
    (tmp_path / "bad.rules").write_text('prefix_rule(\n pattern="é")', encoding="utf-8")
    return tmp_path


def check(place: Path, *argv: str) -> tuple[int, str, str]:
    done = run_codex_py(["execpolicy", *argv], place / "home", place)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("options", "command", "matched", "decision"),
    [
        ("-r a.rules", "git push -h", [PUSH], "prompt"),
        ("--rules a.rules", "-- git push", [PUSH], "prompt"),
        ("--rules=a.rules", "git", [], None),
        (
            "-ra.rules -c x=y",
            "rm -rf x",
            [
                '{"matchedPrefix":["rm"],"decision":"forbidden","justification":"use `trash`"}'
            ],
            "forbidden",
        ),
        (
            "-r b.rules -r a.rules",
            "git push",
            ['{"matchedPrefix":["git","push"],"decision":"allow"}', PUSH],
            "prompt",
        ),
        ("-r a.rules", "/usr/bin/git push", [], None),
        (
            "-r a.rules --resolve-host-executables",
            "/usr/bin/../bin/git push",
            # Codex names the path without `..`.
            [PUSH.replace("}", ',"resolvedProgram":"/usr/bin/../bin/git"}')],
            "prompt",
        ),
        ("-r a.rules --resolve-host-executables", "/opt/git push", [], None),
    ],
)
def test_the_decision_of_the_rules_is_one_line_of_json(
    place: Path, options: str, command: str, matched: list[str], decision: str | None
) -> None:
    rules = ",".join(f'{{"prefixRuleMatch":{match}}}' for match in matched)
    end = f',"decision":"{decision}"' if decision else ""
    assert check(place, "check", *options.split(), *command.split()) == (
        0,
        f'{{"matchedRules":[{rules}]{end}}}\n',
        "",
    )


def test_a_script_is_looked_into(place: Path) -> None:
    """Codex compares the three words alone."""
    code, out, _ = check(
        place, "check", "-r", "a.rules", "bash", "-lc", "ls && (git push >x)"
    )
    assert (code, json.loads(out)["decision"]) == (0, "prompt")


def test_texts_of_rules_do_not_steer_a_terminal(place: Path) -> None:
    text = "no\\x1b[31m \\u009b \\u202e für"
    (place / "odd.rules").write_text(
        f'prefix_rule(pattern=["ls"], justification="{text}")', encoding="utf-8"
    )
    code, out, _ = check(place, "check", "-r", "odd.rules", "ls")
    assert (code, out.strip().isprintable()) == (0, True)
    [match] = json.loads(out)["matchedRules"]
    assert match["prefixRuleMatch"]["justification"] == "no\x1b[31m \x9b \u202e für"


def test_json_may_be_spread_over_lines(place: Path) -> None:
    assert check(place, "check", "-r", "a.rules", "--pretty", "ls")[1] == (
        '{\n  "matchedRules": [\n    {\n      "prefixRuleMatch": {\n        "matchedPrefix": [\n'
        '          "ls"\n        ],\n        "decision": "allow"\n      }\n    }\n  ],\n'
        '  "decision": "allow"\n}\n'
    )
    assert check(place, "check", "-r", "a.rules", "--pretty", "x")[1] == (
        '{\n  "matchedRules": []\n}\n'
    )


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        # Codex says the same at more length, and exits with 1 for files.
        ("check -r a.rules", 2, "Error: say which command: "),
        ("check -r a.rules --", 2, "Error: say which command: "),
        ("check -- ls", 2, "Error: say which rules: "),
        ("check --rules", 2, "Error: -r/--rules: expected one argument\n"),
        ("", 2, "Error: say what to do: "),
        ("test", 2, "Error: unknown command `execpolicy test`. "),
        (
            "check -r none ls",
            78,
            "Error loading rules: none: No such file or directory\n",
        ),
        ("check -r home ls", 78, "Error loading rules: home: Is a directory\n"),
        (
            "check -r bad.rules ls",
            78,
            "Error loading rules: bad.rules:2:10: pattern: expected a list, not a string\n",
        ),
        # Codex takes it for the command.
        ("check -r a.rules --bogus -- ls", 2, "Error: unknown option --bogus.\n"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    place: Path, argv: str, code: int, message: str
) -> None:
    found = check(place, *argv.split())
    assert found[:2] == (code, "")
    assert found[2].startswith(message)
    assert found[2].count("\n") == 1


def test_a_rule_without_effect_is_warned_about(place: Path) -> None:
    (place / "n.rules").write_text(
        'network_rule("a.com", "http", "deny")', encoding="utf-8"
    )
    assert check(place, "check", "-r", "n.rules", "ls") == (
        0,
        '{"matchedRules":[]}\n',
        "Warning: n.rules:1: network_rule for 'a.com' has no effect\n",
    )


@pytest.mark.parametrize(
    "argv", ["--help", "help", "check -h", "check -r a.rules --help"]
)
def test_help_is_printed(place: Path, argv: str) -> None:
    assert check(place, *argv.split()) == (0, help_text("execpolicy"), "")
    assert max(map(len, help_text("execpolicy").splitlines())) <= 80
