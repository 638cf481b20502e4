import pytest

from codex_py.protocol.hosts import address, is_public, matches, normal_host, pattern

_MATCHES = [
    # Of Codex 0.169, but for the ports.
    ("allowed.test", "allowed.test", True),
    ("Allowed.Test.", "allowed.test", True),
    ("allowed.test", "ALLOWED.test.", True),
    ("allowed.test", "sub.allowed.test", False),
    ("allowed.test", "notallowed.test", False),
    ("allowed.test", "allowed.test.evil.test", False),
    ("*.allowed.test", "a.b.allowed.test", True),
    ("*.allowed.test", "allowed.test", False),
    ("*.allowed.test", "notallowed.test", False),
    ("**.allowed.test", "allowed.test", True),
    ("**.allowed.test", "a.b.allowed.test", True),
    ("**.allowed.test", "notallowed.test", False),
    ("*", "any.test", True),
    ("a*.test", "a.b.test", True),
    ("a*.test", "b.test", False),
    ("1.2.3.4", "1.2.3.4", True),
    ("127.0.0.1", "0x7f.1", True),
    ("127.0.0.1", "2130706433", True),
    ("127.0.0.1", "[::ffff:127.0.0.1]", True),
    ("::1", "[::1]", True),
    ("[::1]:80", "[0:0::1]", True),
    ("bücher.test", "xn--bcher-kva.test", True),
    ("*.bücher.test", "a.BÜCHER.test", True),
    ("allowed.test:80", "allowed.test", True),
    ("allowed.test:8080", "allowed.test", False),
    ("*:80", "any.test", True),
    ("*.allowed.test:443", "a.allowed.test", False),
]


@pytest.mark.parametrize(("text", "host", "is_match"), _MATCHES)
def test_a_pattern_is_for_these_hosts_at_port_80(
    text: str, host: str, *, is_match: bool
):
    assert matches(pattern(text), normal_host(host), 80) is is_match


@pytest.mark.parametrize(
    "text",
    [
        *(
            "http://allowed.test",
            "allowed.test/x",
            "a b.test",
            "user@allowed.test",
            "10.0.0.0/8",
        ),
        *(
            "a..test",
            "*..test",
            ".test",
            "allowed.test:x",
            "allowed.test:0",
            "allowed.test:70000",
        ),
        *("[::1", "1.2.3.256", "a[b].test", "a?.test", "fe80::1%eth0", "{a,b}.test"),
    ],
)
def test_another_spelling_is_no_pattern(text: str):
    with pytest.raises(ValueError, match="unsupported domain pattern syntax"):
        pattern(text)


@pytest.mark.parametrize("text", ["", "*.", "**.", ".", ":80"])
def test_a_pattern_without_a_name_is_empty(text: str):
    with pytest.raises(ValueError, match="domain pattern is empty"):
        pattern(text)


@pytest.mark.parametrize(
    "host", ["", "a b", "a/b", "a@b", "a..b", "1.2.3.256", "::1%lo", "a\0b"]
)
def test_no_host_has_such_a_name(host: str):
    with pytest.raises(ValueError, match=r"is no host|codec"):
        normal_host(host)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.1",
            "0",
            "10.9.8.7",
            "169.254.169.254",
            "100.100.100.200",
            "224.0.0.1",
            "::1",
            "::",
        ),
        *(
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
            "2001:0:7f00:1::",
        ),
        *(
            "fd00::1",
            "fe80::1",
            "fec0::1",
            "ff0e::1",
            "::ffff:10.9.8.7",
            "\uff11\uff12\uff17.0.0.1",
        ),
    ],
)
def test_these_addresses_are_not_public(host: str):
    found = address(normal_host(host))
    assert found is not None
    assert not is_public(found)
