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
        f"xai-{'a1B2' * 20}",
        f"gsk_{'a1B2' * 13}",
        f"pplx-{'a1B2' * 12}",
        f"r8_{'a1B2' * 9}c",
        f"sk_live_{'a1B2' * 6}",
        f"rk_test_{'a1B2' * 6}",
        f"SG.{'a-_1bc' * 3}abcd.{'a-_1' * 10}abc",
        f"pypi-AgEIcHlwaS5vcmc{'a-_1' * 20}",
        f"ya29.a0{'a-_1' * 20}",
        f"xapp-1-A012BCDEF34-123456789012-{'a1' * 32}",
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


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("Authorization: BEARER ", "abcdefgh12345678", ""),
        ("Authorization: Basic ", "dXNlcjpwYXNzd29yZA==", ""),
        ("authorization: basic ", "dXNlcjpwYXNzd29yZA==", "'"),
        ("x-api-key: ", "abcdefgh12345678", "' https://x"),
        ('"X-API-Key": "', "abcdefgh12345678", '"'),
        (r"{\"X-Api-Key\":\"", "abcdefgh12345678", r"\""),
        ("https://user:", "pw1", "@example.com/x"),
        ("postgres://a.b:", "p%40ss!", "@[::1]:5432/x"),
        ("redis://:", "p4ss", "@host"),
    ],
)
def test_credentials_of_a_request_are_redacted_and_what_names_them_stays(
    tmp_path: Path, before: str, key: str, after: str
) -> None:
    redact = Redactor({}, tmp_path)
    assert redact(before + key + after) == f"{before}[redacted]{after}"
    assert redact.count == 1
    assert redact(redact(before + key + after)) == f"{before}[redacted]{after}"
    assert redact.count == 2


@pytest.mark.parametrize(
    "text",
    [
        "risk-assessment-of-everything-else sk-short ghp_no AKIA task-aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "Basic authentication, Basic InternationalizationSupport, Basic tutorial2019introduction",
        "x-api-key: YOUR_API_KEY_GOES_HERE x-api-key: $MY_API_KEY_1234567890",
        "xai-org/grok gsk_test pplx-api r8_ sk_live_ SG.x pypi-mirror ya29.x xapp-1",
        "https://host:8080/a@b ssh://git@host:22/x https://[::1]:80/a@b",
        "https://$USER:$TOKEN@host https://user:<password>@host https://{user}:{pw}@host",
        "https://user:***@host http://a:80 and me@example.com",
    ],
)
def test_other_text_stays(tmp_path: Path, text: str) -> None:
    redact = Redactor({}, tmp_path)
    assert redact(text) == text
