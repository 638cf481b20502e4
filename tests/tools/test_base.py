import pytest

from codex_py.protocol.frozen import frozen
from codex_py.tools.base import ToolParams, command_report, invalid_arguments


@frozen(kw_only=True)
class Numbers(ToolParams):
    count: int
    name: str = ""


def test_arguments_are_read_from_json() -> None:
    assert Numbers.model_validate_json('{"count": 2, "name": "x"}') == Numbers(
        count=2, name="x"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"count": "two"}', "`count`"),
        ("{}", "missing field `count`"),
        ('{"count": 1, "name": "\\ud800"}', "surrogates not allowed"),
        ("[1]", "must be an object"),
        ("{", "Expecting property name"),
        ('{"count": 1' + "0" * 5_000 + "}", "a number has too many digits"),
    ],
)
def test_wrong_arguments_are_told_in_words_of_a_model(text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (its words follow)
        Numbers.model_validate_json(text)
    error = invalid_arguments(caught.value)
    assert (error.code, words in str(error)) == ("InvalidArgs", True), str(error)
    assert str(error).startswith("failed to parse function arguments: ")
    assert "sys." not in str(error)


def test_a_report_says_code_time_and_output() -> None:
    report = command_report(1, 2.0, "out", "Note.\n")
    assert report.startswith("Exit code: 1\nWall time: 2 seconds\n")
    assert report.endswith("Output:\nout")
    assert "Note." in report
