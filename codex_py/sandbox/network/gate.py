"""Decides whether a command may reach a host, by its name and its addresses, and connects."""

import asyncio
import resource
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Literal, TypeAlias

from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.hosts import address, is_public, matches, names, normal_host
from codex_py.protocol.network_report import Blocked, NetworkReport, Reason

Kind: TypeAlias = Literal["http", "https_connect", "socks5_tcp"]
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a name; raises an `OSError` if it has none."""
_SAFE_METHODS: Final = {"GET", "HEAD", "OPTIONS"}
"""The methods that limited rules allow."""
_CONNECT_TIMEOUT_S: Final = 30.0
_ASK_TIMEOUT_S: Final = 120.0
_MAX_PORT: Final = 65535
_LOOKUP: Final = "name lookup"
"""The name of the threads that resolve names."""
_MAX_LOOKUPS: Final = 64
"""The most such threads at once."""
_WAIT_S: Final = 0.05


class ConnectionBlocked(Exception):
    """Raised if a connection is blocked."""

    def __init__(self, blocked: Blocked) -> None:
        super().__init__(blocked.reason)
        self.blocked = blocked


@dataclass(eq=False)
class ConnectionGate:
    """Opens the connections of one command."""

    rules: DomainRules
    call_id: str
    """See `Blocked.call_id`."""
    report: NetworkReport
    """Gets the connections that are blocked."""
    resolve: Resolve

    async def open(
        self,
        host: str,
        port: int,
        kind: Kind,
        method: str = "",
    ) -> Streams:
        """Connect to a host. It is resolved once, and only checked addresses are used.

        Args:
            method: that of the request, if `kind` is `http`.

        Raises:
            ConnectionBlocked: the host may not be reached; the connection was added to the report.
            ValueError: `host` is no host, or `port` no port.
            OSError: the host cannot be reached.
        """
        host = normal_host(host)
        if not 0 < port <= _MAX_PORT:
            raise ValueError(f"{port} is no port")
        try:
            addresses = await self._addresses(host, port, kind, method)
        except ConnectionBlocked as refused:
            self.report.add(refused.blocked)
            raise
        problem = OSError(f"{host} has no address")
        for each in addresses:
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    reader, writer = await asyncio.open_connection(each, port)
            except OSError as error:
                problem = error
                continue
            if is_spare(writer.get_extra_info("socket")):
                return reader, writer
            writer.close()
            raise OSError("there are too many connections")
        raise problem

    async def _addresses(
        self,
        host: str,
        port: int,
        kind: Kind,
        method: str,
    ) -> Sequence[str]:
        """The addresses to connect to, if the rules or the user allow the host.

        Raises:
            ConnectionBlocked: the host, all of its addresses or this kind of request is refused.
            OSError: the host has no address.
        """
        host_address = address(host)
        spellings = {host, f"{host}:{port}", f"[{host}]:{port}"}
        is_named = not spellings.isdisjoint(self.rules.allow)
        await self._check_host(host, port, host_address, is_named=is_named)
        self._check_kind(host, port, kind, method)
        if host_address is not None:
            return [host]
        found = await self.resolve(host, port)
        if host == "localhost" and is_named:
            return [each for each in found if _is_loopback(each)]
        allowed = [each for each in found if self._may_have(each, port)]
        if found and not allowed:
            raise self._refused(host, port, "not_allowed_local")
        return allowed

    async def _check_host(
        self,
        host: str,
        port: int,
        host_address: IPv4Address | IPv6Address | None,
        *,
        is_named: bool,
    ) -> None:
        """Raise `ConnectionBlocked` if the host may not be reached, and the user does not allow it.

        Args:
            host_address: the host as an address; None if it is a name.
            is_named: an allowing rule names exactly this host, without a pattern.
        """
        rules = self.rules
        if any(matches(each, host, port) for each in rules.deny):
            raise self._refused(host, port, "denied")
        is_listed = is_named or any(matches(each, host, port) for each in rules.allow)
        is_local = host == "localhost"
        if host_address is not None:
            is_local = not is_public(host_address)
        is_open = is_named or (is_listed and rules.allows_local)
        if is_local and not is_open:
            raise self._refused(host, port, "not_allowed_local")
        if not is_listed:
            await self._ask(Blocked(self.call_id, host, port, "not_allowed"))

    def _check_kind(
        self,
        host: str,
        port: int,
        kind: Kind,
        method: str,
    ) -> None:
        """Raise `ConnectionBlocked` if limited rules refuse this kind of request."""
        if not self.rules.is_limited:
            return
        if kind != "http":
            # The requests in a tunnel cannot be seen.
            raise self._refused(host, port, "mitm_required")
        if method not in _SAFE_METHODS:
            raise self._refused(host, port, "method_not_allowed")

    def _may_have(self, text: str, port: int) -> bool:
        """True if an allowed name may have this address."""
        found = address(text)
        if found is None:
            return False
        host = str(found)
        if any(matches(each, host, port) for each in self.rules.deny):
            return False
        if is_public(found) or self.rules.allows_local:
            return True
        # A local address must be listed itself; a pattern does not suffice.
        listed = [each for each in self.rules.allow if "*" not in each]
        return any(matches(each, host, port) for each in listed)

    def _refused(
        self,
        host: str,
        port: int,
        reason: Reason,
    ) -> ConnectionBlocked:
        return ConnectionBlocked(Blocked(self.call_id, host, port, reason))

    async def _ask(self, blocked: Blocked) -> None:
        """Ask the user while the command waits.

        Raises:
            ConnectionBlocked: the user said no or did not answer, or nobody can be asked.
        """
        if self.rules.is_closed or self.report.ask is None:
            raise ConnectionBlocked(blocked)
        is_allowed = False
        with suppress(TimeoutError):
            async with asyncio.timeout(_ASK_TIMEOUT_S):
                is_allowed = await asyncio.wrap_future(self.report.ask(blocked))
        if not is_allowed:
            raise ConnectionBlocked(blocked)


def _is_loopback(text: str) -> bool:
    found = address(text)
    return found is not None and found.is_loopback


def opens(rules: DomainRules, host: str) -> bool:
    """True if commands may reach this local host of the machine, on at least one port."""
    if any(matches(each, host, None) for each in rules.deny):
        return False
    listed = [each for each in rules.allow if names(each, host)]
    return any(rules.allows_local or "*" not in each for each in listed)


def is_spare(connection: socket.socket) -> bool:
    """True if the process has enough descriptors for this connection.

    The upper half of the descriptors is for the agent itself; they are assigned from below.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connection.fileno() < most // 2


async def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as the machine resolves it.

    Runs in a thread that nobody has to wait for: a name server may be slow to answer, and a session
    may end meanwhile.

    Raises:
        OSError: the name has no address.
    """
    while _running_lookups() >= _MAX_LOOKUPS:  # noqa: ASYNC110 - other loops have some, too
        await asyncio.sleep(_WAIT_S)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()

    def settle(found: Sequence[str], error: OSError | None) -> None:
        if not answer.done():
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(found)

    def ask() -> None:
        found: Sequence[str] = ()
        problem = None
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = [str(address[0]) for *_, address in rows]
            found = list(dict.fromkeys(addresses))
        except OSError as error:
            problem = error
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, found, problem)

    threading.Thread(target=ask, name=_LOOKUP, daemon=True).start()
    return await answer


def _running_lookups() -> int:
    running = [each for each in threading.enumerate() if each.name == _LOOKUP]
    return len(running)
