"""Sends requests through the proxies of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.

The variables mean the same as for httpx and curl. They are read from a given environment, not from
the process. Local addresses are no exception: `NO_PROXY` has to name them.
"""

import ipaddress
import re
from collections.abc import Mapping
from contextlib import suppress

import httpx

from codex_py.errors import ConfigError
from codex_py.protocol.addresses import shown_url
from codex_py.protocol.frozen import frozen

_MAX_PORT = 65535
_BETWEEN_ENTRIES = r"[,;\s]+"
"""curl takes commas and blanks; Windows and some desktops write semicolons."""


@frozen
class Proxies:
    """The proxies of one environment."""

    by_scheme: Mapping[str, tuple[str, str]]
    """Maps `http`, `https` and `all` to the name of the variable and its unchecked value."""
    exempt: tuple[str, ...]
    """Entries of `NO_PROXY`, in lower case."""

    def proxy_for(self, url: httpx.URL) -> tuple[str, str] | None:
        """The variable and the proxy's URL; None for a direct connection.

        Raises:
            ConfigError: the proxy's address cannot be used. It is checked only here, because
                desktops set proxies that no request needs.
        """
        found = self.by_scheme.get(url.scheme) or self.by_scheme.get("all")
        if found is None:
            return None
        default_port = 443 if url.scheme == "https" else 80
        port = url.port or default_port
        for entry in self.exempt:
            if _covers(entry, url.host, port):
                return None
        name, value = found
        return name, _checked(name, value)

    def problems(self) -> list[str]:
        """A sentence for each proxy that cannot be used, even if no request needs it."""
        found: list[str] = []
        for name, value in self.by_scheme.values():
            try:
                _checked(name, value)
            except ConfigError as error:
                found.append(str(error))
        return found


def proxies_from(environment: Mapping[str, str]) -> Proxies | None:
    """Read the proxies from the environment; None if it names no proxy."""
    by_scheme: dict[str, tuple[str, str]] = {}
    for scheme in ("http", "https", "all"):
        # The lower-case spelling is the older one, and wins.
        for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
            value = environment.get(name, "").strip()
            if value:
                by_scheme[scheme] = (name, value)
                break
    if not by_scheme:
        return None
    exempt = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    entries = re.split(_BETWEEN_ENTRIES, exempt.lower())
    return Proxies(by_scheme, tuple(entry for entry in entries if entry))


def _checked(name: str, value: str) -> str:
    """The address in a variable, as a URL. Raises a `ConfigError` if it cannot be used."""
    address = value if "://" in value else f"http://{value}"
    # GNOME and some VPN programs name the protocol without its version.
    address = re.sub("^socks://", "socks5://", address, flags=re.IGNORECASE)
    try:
        # The value may contain a password, so messages do not quote it.
        url = httpx.Proxy(address).url
        if (url.port or 0) > _MAX_PORT:
            raise ValueError
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError(
            f"{name} is no address of an http, https or socks5 proxy"
        ) from error
    if url.raw_path != b"/" or "#" in address:
        raise ConfigError(
            f"{name} has more than a host and a port; in a password, write / as %2F, ? as %3F and # as %23"
        )
    return address


def _covers(
    entry: str,
    host: str,
    port: int,
) -> bool:
    """True if one entry of `NO_PROXY` names this host.

    An entry is `*`, a host (with its subdomains), an address, a network (`10.0.0.0/8`) or the
    beginning of addresses (`127.*`). A port may follow.
    """
    host = host.lower().rstrip(".")
    entry = entry.split("://")[-1]
    if entry == "*":
        return True
    address = None
    with suppress(ValueError):  # the host or the entry is a name
        address = ipaddress.ip_address(host)
        if address in ipaddress.ip_network(entry.strip("[]"), strict=False):
            return True
    name, colon, entry_port = entry.rpartition(":")
    if colon and name and entry_port.isdigit():
        return int(entry_port) == port and _covers(name, host, port)
    if entry.endswith(".*") and address is not None:
        return host.startswith(entry[:-1])
    domain = entry.removeprefix("*").strip(".")
    if not domain or address is not None:
        return False
    return host == domain or host.endswith(f".{domain}")


class ProxyTransport(httpx.AsyncBaseTransport):
    """Sends each request directly or through the proxy that is set for it."""

    def __init__(self, direct: httpx.AsyncBaseTransport, proxies: Proxies) -> None:
        self._direct = direct
        self._proxies = proxies
        self._by_proxy: dict[str, httpx.AsyncBaseTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request.

        Raises:
            ConfigError: the proxy's address is wrong, or the proxy speaks SOCKS and the package for
                that is missing.
        """
        proxy = self._proxies.proxy_for(request.url)
        if proxy is None:
            return await self._direct.handle_async_request(request)
        name, address = proxy
        try:
            return await self._through(name, address).handle_async_request(request)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            cause = str(error) or type(error).__name__
            raise type(error)(
                f"{cause} (through the proxy {shown_url(address)} of {name})"
            ) from error

    def _through(self, name: str, address: str) -> httpx.AsyncBaseTransport:
        transport = self._by_proxy.get(address)
        if transport is None:
            try:
                # Created late, because it loads httpcore and the certificates.
                transport = httpx.AsyncHTTPTransport(proxy=address)
            except ImportError as error:
                raise ConfigError(
                    f"{name} names a SOCKS proxy, which needs the package `socksio`: install"
                    " `codex-py-agent[socks]`, or exempt the host with NO_PROXY"
                ) from error
            self._by_proxy[address] = transport
        return transport

    async def aclose(self) -> None:
        await self._direct.aclose()
        for transport in self._by_proxy.values():
            await transport.aclose()
