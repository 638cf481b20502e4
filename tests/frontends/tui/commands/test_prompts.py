import pytest

from codex_py.errors import CodexError
from codex_py.frontends.tui.commands.prompts import expanded


@pytest.mark.parametrize(
    ("template", "arguments", "text"),
    [
        ("Fix $1 and $2.", "'a b' c", "Fix a b and c."),
        ("All: $ARGUMENTS", "a 'b c' d", "All: a b c d"),
        ("$FILE for $USER", "USER=me FILE='x y'", "x y for me"),
        ("$9 costs $$5, not $10 or $x", "", " costs $5, not $10 or $x"),
        ("$1", "OTHER=1", "OTHER=1"),
    ],
)
def test_arguments_are_put_in_their_places(template: str, arguments: str, text: str) -> None:
    assert expanded(template, arguments) == text


@pytest.mark.parametrize(
    ("arguments", "said"), [("", "give it FILE=…"), ("'open", "cannot be read")]
)
def test_what_is_missing_is_told(arguments: str, said: str) -> None:
    with pytest.raises(CodexError, match=said):
        expanded("$FILE", arguments)
