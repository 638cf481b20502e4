"""Tests `protocol/network_report.py`."""

import pytest

from codex_py.protocol.hosts import matches, pattern
from codex_py.protocol.network_report import Blocked


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "10.9.8.7", "localhost"])
def test_of_this_machine_one_port_alone_is_proposed(host: str) -> None:
    proposed = Blocked("", host, 8080, "not_allowed_local").pattern
    assert proposed is not None
    assert matches(pattern(proposed), host, 8080)
    assert not matches(pattern(proposed), host, 8081)


def test_a_name_that_leads_to_this_machine_cannot_be_allowed_by_its_name() -> None:
    assert Blocked("", "rebound.test", 80, "not_allowed_local").pattern is None
    assert Blocked("", "other.test", 80, "denied").pattern is None
    assert Blocked("", "other.test", 80, "not_allowed").pattern == "other.test"
