"""Ids of calls, made to fit a provider.

Tests `model/call_names.py`.
"""

import pytest

from codex_py.model.call_names import CallIds


@pytest.mark.parametrize("policy", ["verbatim", "openai", "mistral", "anthropic"])
def test_an_id_that_many_calls_share_becomes_as_many_ids(policy: str) -> None:
    ids = CallIds(policy)
    # The square of this number takes minutes.
    assert len({ids.fitting("call_0") for _ in range(20_000)}) == 20_000
