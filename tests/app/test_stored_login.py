import pytest

from codex_py.app.stored_login import masked


@pytest.mark.parametrize("length", [*range(70), 164])
def test_at_most_a_third_of_a_key_is_shown(length: int) -> None:
    key = "".join(chr(ord("a") + at % 26) for at in range(length))
    start, mark, end = masked(key).partition("***")
    assert mark == "***"
    assert key.startswith(start)
    assert key.endswith(end)
    assert len(start) + len(end) <= length / 3


def test_a_long_key_is_shown_as_codex_shows_it() -> None:
    key = "sk-proj-" + "x" * 40 + "56789"
    assert masked(key) == "sk-proj-***56789"
