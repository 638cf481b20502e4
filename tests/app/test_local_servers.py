"""Servers on this machine that list their models, or something else.

Tests `app/providers/local_servers.py`.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from codex_py.app.providers.local_servers import listed_models
from codex_py.config.config import load_config
from codex_py.errors import ModelError
from codex_py.model.providers import resolve_provider


def listed_by(url: str, home: Path) -> None:
    config = load_config(
        cwd=home, environment={"HOME": str(home), "CODEX_HOME": str(home)}
    )
    listed_models(resolve_provider("vllm", {"vllm": {"base_url": url}}), config, {})


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"data": 1}', b'{"data": ["m"]}', b'{"data": [{}]}']
)
def test_a_server_that_lists_no_models_is_no_model_server(
    tmp_path: Path, body: bytes
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ModelError, match="is no vLLM"):
            listed_by(f"http://127.0.0.1:{server.server_port}/v1", tmp_path)
        server.shutdown()


def test_a_list_that_trickles_in_is_not_waited_for(tmp_path: Path) -> None:
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            try:
                while not is_over.wait(0.1):
                    self.wfile.write(b" ")
            except OSError:
                pass

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(ModelError, match="vLLM does not answer"):
            listed_by(f"http://127.0.0.1:{server.server_port}/v1", tmp_path)
        is_over.set()
        server.shutdown()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/ü", "http://a b/v1"])
def test_an_address_that_cannot_be_asked_gets_one_sentence(
    tmp_path: Path, url: str
) -> None:
    with pytest.raises(ModelError, match="vLLM does not answer"):
        listed_by(url, tmp_path)
