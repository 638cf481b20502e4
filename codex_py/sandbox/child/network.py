"""Makes the only way out of a network namespace: a port in it at which the agent's proxy listens.

A socket belongs to the namespace in which it was made. So the launcher makes the listening socket
inside, and passes it to the agent, which accepts the connections: no process has to stand in
between.
"""

import _socket  # importing `socket` takes 5 ms
import posix

PORT = 28128
"""A port that few servers use, below those that the kernel assigns."""
MAX_ID_BYTES = 4096
_BACKLOG = 128
_DESCRIPTOR_BYTES = 4
_HTTP = f"http://127.0.0.1:{PORT}"
_SOCKS = f"socks5h://127.0.0.1:{PORT}"
_BOTH_CASES = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "WS_PROXY", "WSS_PROXY"), _HTTP),
    **dict.fromkeys(("ALL_PROXY", "FTP_PROXY"), _SOCKS),
    **dict.fromkeys(
        ("npm_config_proxy", "npm_config_http_proxy", "npm_config_https_proxy"), _HTTP
    ),
}
"""Variables that programs read in capitals and in small letters."""
_NO_PROXY_NAMES = (
    "NO_PROXY",
    "no_proxy",
    "npm_config_noproxy",
    "NPM_CONFIG_NOPROXY",
    "BUNDLE_NO_PROXY",
)
"""Variables that list the hosts to connect to without a proxy."""
_VARIABLES = {
    **_BOTH_CASES,
    **{name.lower(): value for name, value in _BOTH_CASES.items()},
    **{name.upper(): value for name, value in _BOTH_CASES.items()},
    **dict.fromkeys(("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "PIP_PROXY"), _HTTP),
    **dict.fromkeys(("BUNDLE_HTTP_PROXY", "BUNDLE_HTTPS_PROXY"), _HTTP),
    **dict.fromkeys(("DOCKER_HTTP_PROXY", "DOCKER_HTTPS_PROXY"), _HTTP),
    "NODE_USE_ENV_PROXY": "1",
    "ELECTRON_GET_USE_PROXY": "true",
    "CODEX_NETWORK_PROXY_ACTIVE": "1",
}


def variables(*, allows_local: bool, direct: str) -> dict[bytes, bytes]:
    """Return the variables that direct programs to the proxy, as in Codex.

    Args:
        allows_local: True if the proxy allows local hosts.
        direct: the hosts, separated by commas, that programs connect to without the proxy.
    """
    found = {
        **_VARIABLES,
        **dict.fromkeys(_NO_PROXY_NAMES, direct),
        "CODEX_NETWORK_ALLOW_LOCAL_BINDING": str(int(allows_local)),
    }
    return {name.encode(): value.encode() for name, value in found.items()}


def connect(name: str) -> "_socket.socket":
    """Connect to the agent, outside of the namespace.

    The link must stay open while a process of the command lives.

    Raises:
        OSError: the agent is gone.
    """
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    link.connect(f"\0{name}".encode())
    return link


def listen(link: "_socket.socket") -> None:
    """Listen in this namespace, whose loopback interface is up, and pass the socket to the agent.

    Raises:
        OSError: the kernel refused.
    """
    listening = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", PORT))
    listening.listen(_BACKLOG)
    call_id = posix.environ.get(b"CODEX_TOOL_CALL_ID") or b"-"
    given = listening.fileno().to_bytes(_DESCRIPTOR_BYTES, "little")
    link.sendmsg(
        [call_id[:MAX_ID_BYTES]], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, given)]
    )
    listening.close()
