"""Runs the workflow of docs/ci.md as it stands. A server behind a network proxy and TLS plays GitHub Models."""

import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_message
from tests.action.test_action import MENDS, REVIEW, messages, outputs
from tests.support.hooks import DONE
from tests.support.server import ScriptedServer
from tests.support.workflow_runner import Job

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
HOST = "models.github.ai"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    file = tmp_path / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"]
    command += ["-keyout", str(file), "-out", str(tmp_path / "public.pem")]
    subprocess.run(command, check=True, capture_output=True)
    with file.open("ab") as both:
        both.write((tmp_path / "public.pem").read_bytes())
    return file


@contextmanager
def internet(certificate: Path, port: int) -> Generator[tuple[str, list[str]]]:
    """The address of a network proxy behind which `HOST` is the server at `port`, and the hosts that were asked for."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    asked: list[str] = []

    def serve(client: socket.socket) -> None:
        with client:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1)
            asked.append(head.split()[1].decode())
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            with (
                tls.wrap_socket(client, server_side=True) as secure,
                socket.create_connection(("127.0.0.1", port)) as server,
            ):
                threading.Thread(
                    target=copy, args=(server, secure), daemon=True
                ).start()
                copy(secure, server)

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=serve, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        listener.shutdown(socket.SHUT_RDWR)


def test_the_workflow_of_the_documentation_runs_as_it_stands(
    start: Callable[..., Job], certificate: Path
) -> None:
    workflow = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    review = [*ev_message(REVIEW), ev_completed()]
    with (
        ScriptedServer([MENDS, DONE, review]) as server,
        internet(certificate, server.port) as (address, asked),
    ):
        variables = {"HTTPS_PROXY": address, "SSL_CERT_FILE": str(certificate)}
        job = start(variables=variables)
        result = job.run(workflow, "fix")
    assert result.conclusion == "success", result.log
    assert {*asked} == {f"{HOST}:443"}
    first = server.requests[0]
    assert (first.path, first.fields["model"]) == (
        "/inference/chat/completions",
        "openai/gpt-5",
    )
    assert first.headers["authorization"] == f"Bearer {job.token}"
    patch = (job.workspace / "fix.patch").read_text(encoding="utf-8")
    assert patch.strip() == outputs(result)["patch"].strip()
    assert [level for level, _ in messages(result)] == ["error"]
    assert job.token not in str(result.all_outputs)
    assert job.token not in (job.workspace / ".git" / "config").read_text(
        encoding="utf-8"
    )
    assert result.left_behind == []
