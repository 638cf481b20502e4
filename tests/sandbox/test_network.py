"""What commands reach that have a list of domains, on each backend that holds it, with real programs.

Tests `sandbox/child/network.py`, `sandbox/child/proxied.py`, `sandbox/network/gate.py`,
`sandbox/network/http.py`, `sandbox/network/proxy.py`, `sandbox/network/server.py` and
`sandbox/network/tunnel.py`.
"""

import asyncio
import json
import os
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import traceback
import zipfile
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.network_report import NetworkReport
from codex_py.sandbox.backends.backend import Backend
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.sandbox.network import server
from codex_py.sandbox.network.gate import resolved
from tests.sandbox.local_backends import BACKENDS, workspace
from tests.support.public_network import (
    ALLOWED,
    OTHER,
    can_have_a_network,
    public_network,
    web_server,
)

HOLDING = [each for each in BACKENDS if each.name in {"namespaces", "bwrap", "views"}]
OTHERS = [each for each in BACKENDS if each not in HOLDING]
RULES = DomainRules(("allowed.test", "*.allowed.test"), ("denied.allowed.test",))
needs_root = pytest.mark.skipif(not can_have_a_network(), reason="takes root and `ip`")
on_each = pytest.mark.parametrize("backend", HOLDING, ids=lambda backend: backend.name)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package index and a repository."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "simple/tiny").mkdir(parents=True)
    wheel = "tiny-1-py3-none-any.whl"
    info = "tiny-1.dist-info"
    with zipfile.ZipFile(folder / "simple/tiny" / wheel, "w") as file:
        file.writestr("tiny.py", "")
        file.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n"
        )
        file.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr(f"{info}/RECORD", "")
    index = f'<a href="{wheel}">{wheel}</a>'
    (folder / "simple/tiny/index.html").write_text(index, encoding="ascii")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t.test", "-C"]
    source = folder / "source"
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    subprocess.run(
        [*git, str(source), "commit", "-q", "--allow-empty", "-m", "one"], check=True
    )
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(source), f"{folder}/repo.git"], check=True
    )
    subprocess.run(
        ["git", "-C", f"{folder}/repo.git", "update-server-info"], check=True
    )
    return folder


@pytest.fixture
def world(site: Path, tmp_path: Path) -> Generator[Path]:
    """A folder to work in, in a network with servers at the ports 80, 443 and 8080."""
    pem = tmp_path / "server.pem"
    made = f"-keyout {tmp_path / 'key'} -out {tmp_path / 'cert'}"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=allowed.test -days 2 {made}"
    subprocess.run(command.split(), check=True, capture_output=True)
    pem.write_bytes((tmp_path / "key").read_bytes() + (tmp_path / "cert").read_bytes())
    (tmp_path / "work").mkdir()
    with (
        public_network(tmp_path),
        web_server(site, 80),
        web_server(site, 443, pem),
        web_server(site, 8080),
    ):
        yield tmp_path / "work"


def run(
    backend: Backend,
    script: str,
    cwd: Path,
    rules: DomainRules = RULES,
    **environment: str,
) -> tuple[str, list[str]]:
    """What a script prints, and the blocked hosts with the reason."""
    report = NetworkReport()
    variables = {**os.environ, **environment}
    sandbox = PlatformSandbox(variables, backends=[backend], network=report)
    policy = replace(workspace(cwd), network_access=True, domains=rules)
    try:
        done = subprocess.run(
            sandbox.command(["bash", "-c", script], policy, cwd),
            cwd=cwd,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
            encoding="utf-8",
            timeout=120,
        )
    finally:
        sandbox.release()
    assert not [each for each in threading.enumerate() if each.name == "network proxy"]
    return done.stdout, [
        f"{each.host}:{each.port} {each.reason}" for each in report.take()
    ]


_URLLIB = "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())'"
_REACHED = {
    "http": "curl -sS http://allowed.test/echo",
    "https": "curl -sSk https://allowed.test/echo",
    "another port": "curl -sS http://sub.allowed.test:8080/echo",
    "post": "curl -sS -d abc http://allowed.test/echo | grep -c 'POST allowed.test 3'",
    "long post": "head -c 3000000 /dev/zero | curl -sS --data-binary @- http://allowed.test/echo",
    "socks with a name": "curl -sS --socks5-hostname $ALL $U/echo",
    "socks of a variable": "env -u http_proxy curl -sS $U/echo",
    "capitals and a final dot": "curl -sS http://ALLOWED.test./echo",
    "urllib": f"{_URLLIB} http://allowed.test/echo",
    "two on one connection": "curl -sS $U/echo $U/echo | tail -1",
    "pip": f"{sys.executable} -m pip -q --isolated install --proxy $P --no-deps --target t"
    " --trusted-host allowed.test -i https://allowed.test/simple tiny && ls t/tiny.py",
    "git": "git -c http.sslVerify=false clone -q https://allowed.test/repo.git c && git -C c log --oneline",
    "git by http": "git clone -q http://allowed.test/repo.git d && git -C d log --oneline",
    "a server of its own": "python3 -m http.server 9000 >/dev/null 2>&1 & sleep 1;"
    " curl -sS http://127.0.0.1:9000/ | head -1",
}


@needs_root
@on_each
def test_allowed_hosts_are_reached_by_real_programs(backend: Backend, world: Path):
    prelude = "export HOME=$PWD; U=http://allowed.test P=http://127.0.0.1:28128 ALL=127.0.0.1:28128\n"
    lines = [
        f"out=$( ({command}) 2>&1) && echo '{name}: ok' || echo \"{name}: $out\""
        for name, command in _REACHED.items()
    ]
    printed, blocked = run(backend, prelude + "\n".join(lines), world)
    assert printed.splitlines() == [f"{name}: ok" for name in _REACHED]
    assert blocked == []


_PYTHON = "import socket, sys; "
_KEPT_IN = {
    "another host": "curl -fsS http://other.test/",
    "another host by https": "curl -fsSk https://other.test/",
    "a denied host": "curl -fsS http://denied.allowed.test/",
    "the machine by a name": "curl -fsS http://rebound.allowed.test:8080/",
    "the machine": "curl -fsS http://127.0.0.1/",
    "the machine in another spelling": "curl -fsS http://0x7f.1/ || curl -fsS http://2130706433/",
    "the machine as IPv6": "curl -fsS 'http://[::ffff:127.0.0.1]/' || curl -fsS 'http://[::1]/'",
    "the machine as 0": "curl -fsS http://0/ || curl -fsS http://0.0.0.0/",
    "metadata": "curl -fsS http://169.254.169.254/",
    "a private host": "curl -fsS http://private.test/",
    "an allowed name as a user": "curl -fsS http://allowed.test@other.test/",
    "another host by CONNECT": "curl -fsS -p http://other.test/",
    "a redirection": "curl -fsSL http://allowed.test/redirect",
    "another Host": "curl -fsS -H 'Host: other.test' http://allowed.test/",
    "another host by SOCKS": "curl -fsS --socks5-hostname $ALL http://other.test/",
    "an address by SOCKS": f"curl -fsS --socks5 $ALL --resolve o:80:{OTHER} http://o/",
    "no proxy": f"curl -fsS --noproxy '*' http://{ALLOWED}/",
    "no variables": "env -i curl -fsS http://allowed.test/",
    "connect-to": "curl -fsS --connect-to ::other.test:80 http://allowed.test/ -p",
    "UDP": f'python3 -c \'{_PYTHON}s = socket.socket(2, 2); s.connect(("{ALLOWED}", 53)); s.send(b"x")\'',
    "a raw socket": f"python3 -c '{_PYTHON}socket.socket(2, 3, 1)'",
    "a packet socket": f"python3 -c '{_PYTHON}socket.socket(17, 3)'",
    "a socket of the machine": f"python3 -c '{_PYTHON}socket.socket(1, 1).connect(\"../socket\")'",
    "a local datagram": f"python3 -c '{_PYTHON}socket.socket(1, 2)'",
    "a pair of datagram sockets": f"python3 -c '{_PYTHON}socket.socketpair(1, 2)'",
    "a virtual machine's socket": f"python3 -c '{_PYTHON}socket.socket(40, 1)'",
    "the network of the machine": "nsenter -n -t $PPID true || nsenter -n -t 1 curl -fsS http://other.test/",
    "another network": "unshare -n true || unshare -rn true",
    "the proxy's own socket": "grep -q codex-py- /proc/net/unix",
}


@needs_root
@on_each
def test_nothing_else_is_reached(backend: Backend, world: Path):
    (world.parent / "socket").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(world.parent / "socket"))
        listening.listen()
        lines = [
            f"if ({command}) >/dev/null 2>&1; then echo '{name}: OPEN'; fi"
            for name, command in _KEPT_IN.items()
        ]
        script = "export ALL=127.0.0.1:28128\n" + "\n".join(lines) + "\necho end"
        printed, blocked = run(backend, script, world)
    assert printed.splitlines() == ["end"]
    assert "other.test:80 not_allowed" in blocked
    assert "denied.allowed.test:80 denied" in blocked
    assert "rebound.allowed.test:8080 not_allowed_local" in blocked
    assert "127.0.0.1:80 not_allowed_local" in blocked
    assert "169.254.169.254:80 not_allowed_local" in blocked


@needs_root
def test_a_private_address_is_reached_only_where_it_is_listed(world: Path):
    backend = HOLDING[0]

    def reached(*allow: str, local: bool = False) -> list[str]:
        rules = DomainRules(allow, allows_local=local)
        hosts = ("private.test", "10.9.8.7", "127.0.0.1", "localhost", "allowed.test")
        script = "".join(
            f"curl -fs http://{host}/ >/dev/null && echo {host}\n" for host in hosts
        )
        return run(backend, script, world, rules)[0].split()

    assert reached("*") == ["allowed.test"]
    assert reached("private.test", "10.*", "127.*") == []
    assert reached("10.9.8.7") == ["10.9.8.7"]
    assert reached("localhost") == ["localhost"]
    assert reached("private.test", "10.9.8.7") == ["private.test", "10.9.8.7"]
    assert reached("private.test", local=True) == ["private.test"]
    assert reached("allowed.test:8080") == []
    assert reached("allowed.test:80") == ["allowed.test"]
    assert reached() == []


@needs_root
def test_the_limited_mode_lets_reading_requests_through(world: Path):
    rules = replace(RULES, is_limited=True)
    code = "curl -sk -o /dev/null -w '%{http_code}\\n'"
    script = f"{code} http://allowed.test/echo; {code} -d a http://allowed.test/echo; "
    script += f"{code} -I http://allowed.test/x; curl -sk -w '%{{http_connect}}\\n' https://allowed.test/"
    printed, blocked = run(HOLDING[0], script, world, rules)
    assert printed.split() == ["200", "403", "404", "403"]
    assert blocked == [
        "allowed.test:80 method_not_allowed",
        "allowed.test:443 mitm_required",
    ]


@needs_root
def test_a_blocked_request_is_answered_as_codex_does(world: Path):
    printed, _ = run(HOLDING[0], "curl -si http://other.test/x", world)
    head, _, body = printed.partition("\n\n")
    assert head.startswith("HTTP/1.1 403")
    assert "x-proxy-error: blocked-by-allowlist" in head
    assert json.loads(body) == {
        "status": "blocked",
        "host": "other.test",
        "reason": "not_allowed",
        "decision": "deny",
        "source": "baseline_policy",
        "protocol": "http",
        "port": 80,
        "message": "Domain not in allowlist.",
    }


@on_each
def test_programs_find_the_proxy_by_their_variables(backend: Backend, tmp_path: Path):
    printed, _ = run(
        backend, "env", tmp_path, HTTP_PROXY="http://elsewhere.test", NO_PROXY="*"
    )
    found = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    http, socks = "http://127.0.0.1:28128", "socks5h://127.0.0.1:28128"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "WS_PROXY", "WSS_PROXY"):
        assert (found[name], found[name.lower()]) == (http, http)
    for name in ("ALL_PROXY", "FTP_PROXY"):
        assert (found[name], found[name.lower()]) == (socks, socks)
    for name in ("proxy", "http_proxy", "https_proxy"):
        assert (
            found[f"npm_config_{name}"] == found[f"NPM_CONFIG_{name.upper()}"] == http
        )
    for name in ("YARN", "BUNDLE", "DOCKER"):
        assert found[f"{name}_HTTP_PROXY"] == found[f"{name}_HTTPS_PROXY"] == http
    assert found["PIP_PROXY"] == http
    direct = {
        name
        for name, value in found.items()
        if value == "localhost,127.0.0.1,::1,0.0.0.0"
    }
    assert direct == {
        "NO_PROXY",
        "no_proxy",
        "npm_config_noproxy",
        "NPM_CONFIG_NOPROXY",
        "BUNDLE_NO_PROXY",
    }
    assert (found["NODE_USE_ENV_PROXY"], found["ELECTRON_GET_USE_PROXY"]) == (
        "1",
        "true",
    )
    assert found["CODEX_NETWORK_PROXY_ACTIVE"] == "1"
    assert found["CODEX_NETWORK_ALLOW_LOCAL_BINDING"] == "0"
    assert "CODEX_SANDBOX_NETWORK_DISABLED" not in found


_OWN_SERVER = """
import http.server, socket, subprocess, sys, threading

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"own server")

    def log_message(self, *args):
        pass

# At ::, which takes connections of both families.
server = Server(("::", int(sys.argv[2])), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.exit(subprocess.run(["sh", "-c", sys.argv[1], "sh", str(server.server_port)]).returncode)
"""
_NODE = "fetch(process.argv[1]).then(async found => console.log(await found.text()))"
_HTTPX = "import httpx, sys; print(httpx.get(sys.argv[1]).text)"
_CLIENTS = {
    "curl": "curl -sSg",
    "wget": "wget -qO -",
    "urllib": _URLLIB,
    # It has no SOCKS without another package, and does not start then.
    "httpx": f"env -u all_proxy -u ALL_PROXY {sys.executable} -c '{_HTTPX}'",
    "node": f"node -e '{_NODE}'",
}
_SPELLINGS = (
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
    "app.localhost",
    "LOCALHOST",
    "[::1]",
)


@on_each
def test_a_command_reaches_its_own_servers_past_the_proxy(
    backend: Backend, tmp_path: Path
):
    clients = [
        name for name in _CLIENTS if shutil.which(name) or name in {"urllib", "httpx"}
    ]
    lines = [
        f"echo '{name} {host}' $({_CLIENTS[name]} http://{host}:$1/ 2>&1)\n"
        for name in clients
        for host in _SPELLINGS
    ]
    (tmp_path / "own.py").write_text(_OWN_SERVER, encoding="ascii")
    script = shlex.quote("".join(lines))
    printed, blocked = run(backend, f"{sys.executable} own.py {script} 0", tmp_path)
    found = [
        line.split()[:2]
        for line in printed.splitlines()
        if line.endswith(" own server")
    ]
    for name in clients:
        for host in ("localhost", "127.0.0.1", "0.0.0.0"):
            assert [name, host] in found
    for host in ("[::1]", "app.localhost", "LOCALHOST"):
        assert ["curl", host] in found
    assert [
        each for each in blocked if each.startswith(("localhost:", "127.", "0.0."))
    ] == []


@pytest.mark.skipif(not HOLDING, reason="no backend holds a list")
@pytest.mark.parametrize(
    ("rules", "direct"),
    [
        (DomainRules(), "localhost,127.0.0.1,::1,0.0.0.0"),
        (DomainRules(("*",)), "localhost,127.0.0.1,::1,0.0.0.0"),
        (DomainRules(("127.*", "local*")), "localhost,127.0.0.1,::1,0.0.0.0"),
        (DomainRules(("localhost",)), "127.0.0.1,::1,0.0.0.0"),
        (DomainRules(("localhost:8080",)), "127.0.0.1,::1,0.0.0.0"),
        (DomainRules(("127.0.0.1", "[::1]:80")), "localhost,0.0.0.0"),
        (DomainRules(("*",), allows_local=True), ""),
        (DomainRules(("127.*",), allows_local=True), "localhost,::1,0.0.0.0"),
        (
            DomainRules(("pypi.org",), allows_local=True),
            "localhost,127.0.0.1,::1,0.0.0.0",
        ),
        (
            DomainRules(("*",), ("localhost", "127.0.0.1:22"), allows_local=True),
            "localhost",
        ),
    ],
)
def test_a_local_host_that_the_list_opens_is_reached_through_the_proxy(
    tmp_path: Path, rules: DomainRules, direct: str
):
    printed, _ = run(HOLDING[0], "echo $NO_PROXY", tmp_path, rules)
    assert printed.strip() == direct


@needs_root
@on_each
def test_a_listed_localhost_is_that_of_the_machine(backend: Backend, world: Path):
    rules = DomainRules(("localhost",))
    (world / "own.py").write_text(_OWN_SERVER, encoding="ascii")
    ask = "curl -sS http://localhost:8080/echo; curl -sS http://127.0.0.1:8080/echo"
    printed, blocked = run(backend, f"python3 own.py '{ask}' 8080", world, rules)
    assert printed.splitlines() == ["GET localhost:8080 0", "own server"]
    assert blocked == []


@pytest.mark.parametrize("backend", OTHERS, ids=lambda backend: backend.name)
def test_a_backend_that_cannot_hold_a_list_runs_nothing(
    backend: Backend, tmp_path: Path
):
    sandbox = PlatformSandbox(os.environ, backends=[backend], network=NetworkReport())
    policy = SandboxPolicy("workspace-write", (tmp_path,), True, domains=RULES)
    with pytest.raises(ToolError, match=r"--allow-unenforced permissions\.network"):
        sandbox.command(["true"], policy, tmp_path)
    accepted = replace(policy, domains=replace(RULES, may_be_unenforced=True))
    assert sandbox.command(["true"], accepted, tmp_path)
    sandbox.release()


def test_without_a_proxy_a_command_with_a_list_is_offline(tmp_path: Path):
    sandbox = PlatformSandbox(os.environ, backends=HOLDING)
    policy = SandboxPolicy("workspace-write", (tmp_path,), True, domains=RULES)
    script = f"import socket; socket.create_connection(({ALLOWED!r}, 80), 5)"
    try:
        command = sandbox.command([sys.executable, "-c", script], policy, tmp_path)
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    finally:
        sandbox.release()
    assert b"Network is unreachable" in done.stderr


_RAW = """
import socket, sys
def ask(text):
    with socket.create_connection(("127.0.0.1", 28128)) as s:
        s.sendall(text.replace("|", "\\r\\n").encode())
        s.shutdown(1)
        data = b""
        while part := s.recv(65536):
            data += part
        return [line.split()[1].decode() for line in data.split(b"\\n") if line.startswith(b"HTTP/")]
for text in sys.argv[1:]:
    print(*ask(text))
"""
_A, _TWO = (
    "GET http://allowed.test/echo HTTP/1.1|Host: allowed.test|",
    "Content-Length: 3|",
)
_HOSTILE = {
    # Each request on a connection is judged.
    f"{_A}|GET http://other.test/ HTTP/1.1|Host: other.test||": "200 403",
    f"{_A}|{_A}|": "200 200",
    # A request has one length, one host and one form.
    f"{_A}{_TWO}Transfer-Encoding: chunked||0||": "400",
    f"{_A}Content-Length: 3|Content-Length: 4||abcd": "400",
    f"{_A}Transfer-Encoding: gzip, chunked||0||": "501",
    f"{_A}Host: other.test||": "400",
    "GET http://allowed.test/ HTTP/1.1|Host: other.test||": "400",
    "GET http://allowed.test/ HTTP/1.1|Host: allowed.test:8080||": "400",
    "GET http://allowed.test/ HTTP/1.1||": "400",
    "GET / HTTP/1.1|Host: allowed.test||": "400",
    "GET https://allowed.test/ HTTP/1.1|Host: allowed.test||": "400",
    "GET http://other.test#@allowed.test/ HTTP/1.1|Host: allowed.test||": "400",
    "GET http://other.test\\@allowed.test/ HTTP/1.1|Host: allowed.test||": "400",
    "GET http://other.test:80@allowed.test/echo HTTP/1.1|Host: allowed.test||": "200",
    "GET http://allowed.test%2eother.test/ HTTP/1.1|Host: allowed.test||": "400",
    # What would be a second request for the server is none.
    f"{_A}{_TWO}|abcGET http://other.test/ HTTP/1.1|Host: other.test||": "200 403",
    f"{_A}Connection: close, host|X: a||": "200",
    "CONNECT other.test:80 HTTP/1.1|Host: allowed.test:80||": "403",
    "CONNECT allowed.test HTTP/1.1|Host: allowed.test||": "400",
    "CONNECT allowed.test:80 HTTP/1.1|Host: x||GET /echo HTTP/1.0||": "200 200",
    "HEAD http://other.test/ HTTP/1.1|Host: other.test||": "403",
    "nonsense||": "400",
    # No port: what is asked for after it is still answered.
    f"{_A.replace('.test', '.test:99999')}|": "400",
    "CONNECT allowed.test:99999 HTTP/1.1|Host: allowed.test||": "400",
    "CONNECT allowed.test:0 HTTP/1.1|Host: allowed.test||": "400",
    f"{_A} |": "400",
    f"{_A}X: a||": "200",
}


@needs_root
def test_no_form_of_a_request_gets_past_the_list(world: Path):
    (world / "raw.py").write_text(_RAW, encoding="ascii")
    words = " ".join(f"'{text}'" for text in _HOSTILE)
    printed, _ = run(HOLDING[0], f"python3 raw.py {words}", world)
    found = dict(zip(_HOSTILE, printed.splitlines(), strict=True))
    assert found == _HOSTILE


@needs_root
@on_each
def test_an_administrators_list_holds_commands_in_full_access(
    backend: Backend, world: Path
):
    rules = replace(RULES, is_required=True)
    report = NetworkReport()
    sandbox = PlatformSandbox(os.environ, backends=[backend], network=report)
    policy = SandboxPolicy("danger-full-access", network_access=True, domains=rules)
    script = f"curl -s http://allowed.test/echo; curl -s http://other.test/ -o o; touch {world.parent}/new;"
    script += f" curl -s --noproxy '*' http://{OTHER}/echo"
    try:
        command = sandbox.command(["sh", "-c", script], policy, world)
        done = subprocess.run(
            command, cwd=world, capture_output=True, check=False, timeout=60
        )
    finally:
        sandbox.release()
    assert done.stdout == b"GET allowed.test 0\n"
    assert [each.host for each in report.take()] == ["other.test"]
    assert (world.parent / "new").exists()


@needs_root
@pytest.mark.parametrize("call_id", ["x" * 1000, "x" * 199 + "é", "é" * 3000])
def test_the_name_of_a_call_may_be_long(world: Path, call_id: str):
    script = "curl -sS http://allowed.test/echo; curl -s -o o http://other.test/"
    printed, blocked = run(HOLDING[0], script, world, CODEX_TOOL_CALL_ID=call_id)
    assert printed == "GET allowed.test 0\n"
    assert blocked == ["other.test:80 not_allowed"]


_MANY = """
import resource, select, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
held = [socket.create_connection(("127.0.0.1", 28128)) for _ in range(180)]
print(bool(select.select(held, [], [], 60)[0]), flush=True)
input()
"""


def test_names_that_are_slow_to_resolve_take_a_bounded_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
):
    may_answer = threading.Event()

    def slow(*_: object, **__: object) -> list[tuple[object, ...]]:
        may_answer.wait()
        return [(0, 0, 0, "", ("93.184.216.34", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", slow)

    async def many() -> list[Sequence[str]]:
        asked = [
            asyncio.ensure_future(resolved(f"{number}.test", 80))
            for number in range(100)
        ]
        await asyncio.sleep(0)
        names = [each.name for each in threading.enumerate()]
        assert 0 < names.count("name lookup") <= 64
        may_answer.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(many()) == [["93.184.216.34"]] * 100


@pytest.mark.skipif(not HOLDING, reason="no backend holds a list")
def test_the_connections_of_a_command_leave_descriptors_to_the_agent(tmp_path: Path):
    sandbox = PlatformSandbox(os.environ, backends=HOLDING, network=NetworkReport())
    policy = replace(workspace(tmp_path), network_access=True, domains=RULES)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    try:
        command = sandbox.command([sys.executable, "-c", _MANY], policy, tmp_path)
        with subprocess.Popen(
            command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == b"True\n"
            assert len(list(Path("/proc/self/fd").iterdir())) <= 110
            running.communicate(b"\n")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        sandbox.release()


_ASK = """
import socket
for _ in range(2):
    with socket.create_connection(("127.0.0.1", 28128), 10) as link:
        link.sendall(b"GET http://allowed.test/ HTTP/1.1\\r\\nhost: allowed.test\\r\\n\\r\\n")
        link.recv(1)
"""


@pytest.mark.skipif(not HOLDING, reason="no backend holds a list")
@pytest.mark.parametrize(("broken", "count"), [("resolved", 2), ("_accept", 1)])
def test_a_bug_ends_a_connection_or_the_network_of_one_command_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, count: int
):
    async def fail(*_: object) -> None:
        raise ZeroDivisionError("made")

    monkeypatch.setattr(server, broken, fail)
    found: list[Exception] = []
    report = NetworkReport(tell_bug=found.append)
    sandbox = PlatformSandbox(os.environ, backends=HOLDING, network=report)
    policy = replace(workspace(tmp_path), network_access=True, domains=RULES)
    try:
        for _ in range(2):
            command = sandbox.command([sys.executable, "-c", _ASK], policy, tmp_path)
            subprocess.run(
                command, cwd=tmp_path, capture_output=True, check=False, timeout=60
            )
    finally:
        sandbox.release()
    assert len(found) == 2 * count
    assert "made" in "".join(traceback.format_exception(found[0]))
