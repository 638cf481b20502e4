import asyncio
import base64

import httpx
import pytest

from codex_py.errors import ConfigError
from codex_py.http.proxy import proxies_from
from codex_py.http.transport import BulkTransport, http_client, http_transport
from tests.support.raw_server import RawConnection, answers, raw_server

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"


def proxy_for(url: str, **environment: str) -> tuple[str, str] | None:
    proxies = proxies_from(environment)
    return proxies and proxies.proxy_for(httpx.URL(url))


def test_without_proxy_variables_there_is_no_proxy() -> None:
    assert proxies_from({"NO_PROXY": "*", "HTTP_PROXY": ""}) is None
    assert isinstance(http_transport({}), BulkTransport)


def test_the_scheme_picks_the_variable() -> None:
    environment = {
        "HTTP_PROXY": "plain:1",
        "https_proxy": "http://tls:2",
        "ALL_PROXY": "all:3",
    }
    assert proxy_for("http://h/", **environment) == ("HTTP_PROXY", "http://plain:1")
    assert proxy_for("https://h/", **environment) == ("https_proxy", "http://tls:2")
    assert proxy_for("https://h/", ALL_PROXY="all:3") == ("ALL_PROXY", "http://all:3")
    assert proxy_for("https://h/", HTTP_PROXY="plain:1") is None


def test_small_letters_win() -> None:
    assert proxy_for("http://h/", HTTP_PROXY="a", http_proxy="b") == (
        "http_proxy",
        "http://b",
    )


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ("*", "api.example.com"),
        ("example.com", "example.com"),
        ("example.com", "api.Example.com"),
        (".example.com", "api.example.com"),
        ("*.example.com", "api.example.com"),
        ("other, example.com", "api.example.com"),
        ("example.com:8080", "api.example.com:8080"),
        ("http://example.com", "example.com"),
        ("localhost", "localhost:11434"),
        ("127.0.0.1", "127.0.0.1:1234"),
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3:80", "10.1.2.3"),
        ("::1", "[::1]:8080"),
        ("[::1]", "[::1]"),
        ("fd00::/8", "[fd00::5]"),
        ("other example.com", "example.com"),
        ("localhost;127.0.0.1;", "127.0.0.1:8080"),
        ("a,\tb  ;c", "c"),
        ("127.*", "127.0.0.1:1234"),
        ("192.168.*", "192.168.7.9"),
        ("10.*:80", "10.0.0.1"),
    ],
)
def test_no_proxy_exempts(entry: str, host: str) -> None:
    assert proxy_for(f"http://{host}/", HTTP_PROXY="p", NO_PROXY=entry) is None


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ("example.com", "badexample.com"),
        ("example.com:8080", "example.com"),
        ("10.0.0.0/8", "11.0.0.1"),
        ("10.0.0.0/8", "example.com"),
        ("1", "10.0.0.1"),
        ("", "localhost"),
    ],
)
def test_no_proxy_leaves_the_others(entry: str, host: str) -> None:
    assert proxy_for(f"http://{host}/", HTTP_PROXY="p", NO_PROXY=entry) is not None


@pytest.mark.parametrize(
    "value",
    [
        "ftp://user:secret@p",
        "http://user:secret@p:port",
        "http://user:secret@p:99999",
        "http://user:x@secret/y@127.0.0.1:1",
        "http://user:x@p#secret@127.0.0.1:1",
        "user:x@p?secret@127.0.0.1:1",
        "http://p:1/secret",
    ],
)
def test_a_bad_address_names_its_variable_and_no_secret(value: str) -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as caught:
        proxy_for("https://h/", HTTPS_PROXY=value)
    assert "secret" not in str(caught.value)
    # A proxy that no request needs stops nothing.
    assert proxy_for("http://h/", HTTPS_PROXY=value) is None
    assert proxy_for("https://h/", HTTPS_PROXY=value, NO_PROXY="h") is None


@pytest.mark.parametrize("value", ["socks://127.0.0.1:9/", "SOCKS://127.0.0.1:9"])
def test_socks_without_a_version_is_socks_5(value: str) -> None:
    found = proxy_for("http://h/", ALL_PROXY=value)
    assert found is not None
    assert found[1].startswith("socks5://127.0.0.1:9")


def test_requests_go_through_the_proxy_but_for_the_exempt() -> None:
    async def main() -> tuple[list[bytes], list[bytes]]:
        async with (
            raw_server(answers(RESPONSE)) as proxy,
            raw_server(answers(RESPONSE)) as direct,
        ):
            environment = {
                "HTTP_PROXY": proxy.url.replace("//", "//user:secret@"),
                "NO_PROXY": "127.0.0.1",
            }
            async with http_client(environment=environment) as client:
                await client.get("http://model.example/v1")
                await client.get(direct.url)
            return proxy.requests, direct.requests

    (proxied,), (direct,) = asyncio.run(main())
    assert proxied.startswith(b"GET http://model.example/v1 HTTP/1.1\r\n")
    assert base64.b64encode(b"user:secret") in proxied
    assert direct.startswith(b"GET / HTTP/1.1\r\n")


def test_https_goes_through_a_tunnel_and_a_refusal_names_the_proxy() -> None:
    async def handler(connection: RawConnection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")

    async def main() -> bytes:
        async with raw_server(handler) as proxy:
            environment = {"HTTPS_PROXY": proxy.url.replace("//", "//user:secret@")}
            async with http_client(environment=environment) as client:
                with pytest.raises(httpx.ProxyError) as caught:
                    await client.get("https://model.example/v1")
            text = str(caught.value)
            assert text == (
                f"407 Proxy Authentication Required (through the proxy {proxy.url} of HTTPS_PROXY)"
            )
            return proxy.requests[0]

    assert asyncio.run(main()).startswith(b"CONNECT model.example:443 HTTP/1.1\r\n")


def test_a_socks_proxy_without_its_package_says_what_is_missing() -> None:
    async def main() -> None:
        async with http_client(
            environment={"ALL_PROXY": "socks5://127.0.0.1:9"}
        ) as client:
            await client.get("http://model.example/v1")

    pytest.importorskip("httpcore")
    with pytest.raises(ConfigError, match="socksio"):
        asyncio.run(main())
