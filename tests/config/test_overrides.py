import pytest

from codex_py.config.overrides import parse_overrides
from codex_py.errors import ConfigError


def test_values_are_toml_and_else_plain_text():
    assert parse_overrides(
        [
            "model_reasoning_effort=high",
            'model="a=b"',
            "service_tier = flex ",
            "tool_output_token_limit=5",
            'notify=["a", "b"]',
            'instructions=say = "hi"',
            "model_verbosity=",
        ]
    ) == {
        "model_reasoning_effort": "high",
        "model": "a=b",
        "service_tier": "flex",
        "tool_output_token_limit": 5,
        "notify": ["a", "b"],
        "instructions": 'say = "hi"',
        "model_verbosity": "",
    }


def test_keys_are_dotted_and_may_be_quoted():
    assert parse_overrides(
        ['projects."/a.b/c=d".trust_level=trusted', "a.b=1", "a.c.d=2", "my server.x=3"]
    ) == {
        "projects": {"/a.b/c=d": {"trust_level": "trusted"}},
        "a": {"b": 1, "c": {"d": 2}},
        "my server": {"x": 3},
    }


def test_the_last_one_wins_whatever_it_replaces():
    assert parse_overrides(["a=1", "a.b=2", "a.b=3"]) == {"a": {"b": 3}}
    assert parse_overrides(["a.b=2", "a=1"]) == {"a": 1}


def test_a_line_break_cannot_smuggle_in_another_key():
    assert parse_overrides(["model=1\nsandbox_mode=2"]) == {
        "model": "1\nsandbox_mode=2"
    }


@pytest.mark.parametrize("text", ["foo", "", "=5", " = 5"])
def test_an_override_needs_a_key_and_an_equals_sign(text: str):
    with pytest.raises(ConfigError, match="Error parsing -c overrides"):
        parse_overrides([text])


def test_nesting_is_bounded():
    assert parse_overrides(["a=" + "[" * 3000]) == {"a": "[" * 3000}
    for text in ("a=" + "[" * 90 + "]" * 90, ".".join("a" * 3000) + "=1"):
        with pytest.raises(ConfigError, match="inside each other"):
            parse_overrides([text])
