import json
from pathlib import Path

import pytest

from codex_py.app.redaction import Redactor

PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----"


@pytest.mark.parametrize(
    "key",
    [
        *(
            f"sk-{'a1' * 12}",
            f"sk-proj-{'a-_1' * 12}",
            f"ghp_{'a1' * 18}",
            f"github_pat_{'a1' * 20}",
        ),
        *(
            "AKIAIOSFODNN7EXAMPLE",
            f"xoxb-{'1' * 12}",
            f"AIza{'a' * 35}",
            f"glpat-{'a' * 20}",
            PEM,
        ),
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk",
    ],
)
def test_text_that_looks_like_a_key_is_redacted(tmp_path: Path, key: str) -> None:
    redact = Redactor({}, tmp_path)
    assert redact(f"export K='{key}'; x") == "export K='[redacted]'; x"
    assert redact.count == 1


def test_keys_of_the_user_are_taken_out_whatever_they_look_like(tmp_path: Path) -> None:
    tokens = {"access_token": "from-the-login", "account_id": "x"}
    (tmp_path / "auth.json").write_text(
        json.dumps({"tokens": tokens}), encoding="utf-8"
    )
    environment = {
        "MY_API_KEY": "correct horse",
        "DEBUG_TOKEN": "1",
        "SSH_KEY": "/home/a/.ssh/id",
    }
    redact = Redactor(environment, tmp_path)
    text = "correct horse; from-the-login; 1 /home/a/.ssh/id; Authorization: Bearer abcdefgh12345678"
    assert redact(text) == (
        "[redacted]; [redacted]; 1 /home/a/.ssh/id; Authorization: Bearer [redacted]"
    )


def test_a_key_in_json_is_taken_out(tmp_path: Path) -> None:
    key = 'first "line"\nsecond\\line'
    redact = Redactor({"MY_SECRET": key}, tmp_path)
    assert redact(json.dumps({"env": key})) == '{"env": "[redacted]"}'


@pytest.mark.parametrize(
    "before",
    [
        *(
            r"{\"a\": \"x\n",
            r"a\\t",
            "\x1b[01;31m\x1b[K",
            "\x1b[1m",
            r"\u001b[m",
            "https://x/?a%3D",
        ),
        *("TOKEN_", "https://u:"),
    ],
)
@pytest.mark.parametrize(
    "key", [f"ghp_{'a1' * 18}", f"sk-proj-{'a-_1' * 12}", "AKIAIOSFODNN7EXAMPLE"]
)
def test_an_escape_sequence_before_a_key_is_not_part_of_the_key(
    tmp_path: Path, before: str, key: str
) -> None:
    assert Redactor({}, tmp_path)(before + key) == f"{before}[redacted]"


def test_a_key_of_the_user_in_an_address_is_taken_out(tmp_path: Path) -> None:
    redact = Redactor({"MY_SECRET": "own/k&y+1 é"}, tmp_path)
    assert (
        redact("https://x/?k=own%2Fk%26y%2B1%20%C3%A9&b") == "https://x/?k=[redacted]&b"
    )


@pytest.mark.parametrize(
    "text",
    [
        '+ab"c\\d\n+SECRET',
        ' ab"c\\d\n+SECRET',
        '-ab"c\\d\r\n-SECRET',
        '> ab"c\\d\n> SECRET',
        '    ab"c\\d\n    SECRET',
        ' 9: ab"c\\d\n10: SECRET',
        r'"+ab\"c\\d\n+SECRET',
        r'"+ab\"c\\d\r\n+SECRET',
        "x=ab%22c%5Cd%0ASECRET",
    ],
)
def test_a_key_of_several_lines_is_taken_out_with_marks_before_its_lines(
    tmp_path: Path, text: str
) -> None:
    redact = Redactor({"MULTI_KEY": 'ab"c\\d\nSECRET\n'}, tmp_path)
    found = redact(f"a {text} b")
    assert "[redacted] b" in found
    assert "SECRET" not in found
    assert redact.count == 1


def test_a_key_in_arguments_within_a_line_is_taken_out(tmp_path: Path) -> None:
    key = 'ab"c\\d\nSECRET'
    redact = Redactor({"MULTI_KEY": key}, tmp_path)
    patch = "+" + key.replace("\n", "\n+")
    line = json.dumps({"arguments": json.dumps({"patch": patch})})
    changed = json.loads(redact.line(line.encode()))
    assert json.loads(changed["arguments"]) == {"patch": "+[redacted]"}


def test_other_text_stays(tmp_path: Path) -> None:
    redact = Redactor({}, tmp_path)
    text = "risk-assessment-of-everything-else sk-short ghp_no AKIA task-aaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    assert redact(text) == text
