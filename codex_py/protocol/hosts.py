"""Names and addresses of hosts, and the patterns of a domain list.

Both are brought to one spelling: resolvers accept several for the same host.
"""

import re
import socket
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_OLD_ADDRESS: Final = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}")
"""`127.1`, `0x7f000001` and the like, which resolvers understand as `inet_aton` does."""
_GLOB: Final = re.compile(r"[a-z0-9_.*-]+")
_WITH_PORT: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*):(\d{1,5})")
_NAT64: Final = IPv6Network("64:ff9b::/96")
"""Addresses that stand for the IPv4 address in their last 32 bits."""
_MAX_NAME: Final = 253
_MAX_PORT: Final = 65535


def normal_host(host: str) -> str:
    """Return the normal spelling of a name or an address; IPv6 has no brackets.

    Raises:
        ValueError: the text cannot be the name of a host.
    """
    host = host.lower()
    if host.startswith("[") and host.endswith("]") and ":" in host:
        host = host[1:-1]
    if not host.isascii():
        host = host.encode("idna").decode("ascii").lower()
    host = host.removesuffix(".")
    if ":" in host or _OLD_ADDRESS.fullmatch(host):
        found = address(host)
        if found is None:
            raise ValueError(f"{host!r} is no host")
        return str(found)
    if not _NAME.fullmatch(host) or len(host) > _MAX_NAME:
        raise ValueError(f"{host!r} is no host")
    return host


def address(host: str) -> Address | None:
    """The address that a resolver would read in the text without a query; None for a name.

    An IPv6 address that stands for an IPv4 address is returned as the IPv4 address.
    """
    if _OLD_ADDRESS.fullmatch(host):
        try:
            return IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    if "%" in host:
        return None
    try:
        found = ip_address(host)
    except ValueError:
        return None
    if isinstance(found, IPv4Address):
        return found
    if found in _NAT64:
        return IPv4Address(int(found) & 0xFFFFFFFF)
    return found.ipv4_mapped or found.sixtofour or found


def is_public(found: Address) -> bool:
    """True if an address can be reached from the whole internet."""
    if isinstance(found, IPv6Address) and found.is_site_local:
        return False
    return found.is_global and not (found.is_multicast or found.is_reserved)


def pattern(text: str) -> str:
    """Return the normal spelling of a pattern of a domain list.

    It is `NAME`, `*.NAME`, `**.NAME`, `*`, `a*b` or an address, each with or without `:PORT`.

    Raises:
        ValueError: the text is none of these.
    """
    host, port = _parts(text.strip().lower())
    if host in {"*", "**"}:
        return f"*{port}"
    if not host.lstrip("*").strip("."):
        raise ValueError("domain pattern is empty")
    if port and not 0 < int(port[1:]) <= _MAX_PORT:
        raise _unsupported(text)
    if "*" in host:
        return f"{_normal_glob(host, text)}{port}"
    try:
        host = normal_host(host)
    except ValueError:
        raise _unsupported(text) from None
    if ":" in host and port:
        return f"[{host}]{port}"
    return f"{host}{port}"


def _normal_glob(host: str, text: str) -> str:
    """The normal spelling of a host with wildcards. `text` is the whole pattern, for the error."""
    if not host.isascii():
        labels = [_normal_label(label) for label in host.split(".")]
        host = ".".join(labels)
    host = host.removesuffix(".")
    if not _GLOB.fullmatch(host) or ".." in host or host.startswith("."):
        raise _unsupported(text)
    return host


def _normal_label(label: str) -> str:
    """A label of a pattern with wildcards, in ASCII."""
    if not label or "*" in label:
        return label
    return normal_host(label)


def matches(
    pattern: str,
    host: str,
    port: int | None,
) -> bool:
    """True if a pattern covers this host at this port.

    Args:
        pattern: as `pattern` returns it.
        host: as `normal_host` returns it.
        port: None asks about all ports together.
    """
    _name, covered = _parts(pattern)
    return covered in {"", f":{port}"} and names(pattern, host)


def names(pattern: str, host: str) -> bool:
    """True if a pattern covers this host at one port at least. See `matches` for the arguments."""
    name, _port = _parts(pattern)
    return _expression(name).fullmatch(host) is not None


@cache
def _expression(name: str) -> re.Pattern[str]:
    """The regular expression for the host of a pattern."""
    name = name.strip("[]")
    above = ""
    for prefix, expression in (("**.", r"(?:.+\.)?"), ("*.", r".+\.")):
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            above = expression
            break
    below = re.escape(name).replace(r"\*", ".*")
    return re.compile(above + below)


def _parts(text: str) -> tuple[str, str]:
    """Split a pattern into the host, IPv6 without brackets, and `:PORT` or an empty text."""
    host = text
    port = ""
    found = _WITH_PORT.fullmatch(text)
    if found is not None:
        host = found[1]
        port = f":{int(found[2])}"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, port


def _unsupported(text: str) -> ValueError:
    hint = "write a host such as `pypi.org`, with `*.` or `**.` before it for those below it"
    return ValueError(f"unsupported domain pattern syntax: {text!r}; {hint}")
