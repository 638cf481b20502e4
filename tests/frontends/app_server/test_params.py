from typing import Any

import pytest

from codex_py.frontends.app_server.params import ThreadRead, read_params
from codex_py.protocol.checked import UnknownField


@pytest.mark.parametrize("value", [None, False, [], {}])
def test_a_field_that_is_not_served_may_ask_for_nothing(value: Any) -> None:
    params = read_params(ThreadRead, {"threadId": "x", "later": value})
    assert params.thread_id == "x"


@pytest.mark.parametrize("value", [True, 0, 0.0, 1, "", "a", [0], {"a": None}])
def test_a_field_that_is_not_served_is_refused_if_it_asks_for_something(
    value: Any,
) -> None:
    with pytest.raises(UnknownField, match="later"):
        read_params(ThreadRead, {"threadId": "x", "later": value})


@pytest.mark.parametrize("value", [0, "", "a", True])
def test_a_field_that_decorates_may_have_any_value(value: Any) -> None:
    read_params(ThreadRead, {"threadId": "x", "serviceName": value})
