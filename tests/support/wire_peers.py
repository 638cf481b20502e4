"""Servers of the model APIs that others have written, where they are installed.

`WIRE_PEERS` names a folder with `venv` (litellm[proxy]), with `node_modules` (@copilotkit/aimock), or with both.
"""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_READY_S = 90.0
_KEY = "sk-peer-7d41c09e52"
_PROXY = """\
model_list:
  - model_name: "*"
    litellm_params:
      model: "hosted_vllm/*"
      api_base: "http://127.0.0.1:{port}/v1"
      api_key: none
      max_retries: 0
      use_chat_completions_api: true
router_settings: {{num_retries: 0, disable_cooldowns: true}}
general_settings: {{master_key: {key}}}
"""


@dataclass(frozen=True)
class Peer:
    base_url: str
    upstream_port: int = 0
    """Where a proxy looks for the server of Chat Completions behind it."""
    key: str = _KEY


@contextmanager
def litellm(folder: Path) -> Generator[Peer]:
    """The proxy of LiteLLM, in front of a server of Chat Completions. `folder` is for its files."""
    port, upstream_port = _free_ports(2)
    config = folder / "litellm.yaml"
    config.write_text(_PROXY.format(port=upstream_port, key=_KEY), encoding="utf-8")
    command = [
        *(_program("venv/bin/litellm"), "--config", str(config)),
        *("--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"),
    ]
    settings = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
    with _running(command, folder, settings, "Uvicorn running"):
        yield Peer(f"http://127.0.0.1:{port}/v1", upstream_port)


@contextmanager
def aimock(folder: Path, fixtures: Sequence[Mapping[str, Any]]) -> Generator[Peer]:
    """CopilotKit's mock of the APIs, which answers from `fixtures`, in its own format."""
    (port,) = _free_ports(1)
    path = folder / "fixtures.json"
    path.write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
    program = _program("node_modules/@copilotkit/aimock/dist/cli.js")
    command = [
        "node",
        program,
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-f",
        str(path),
        "-c",
        "12",
    ]
    with _running(command, folder, {}, "listening"):
        yield Peer(f"http://127.0.0.1:{port}/v1")


def _program(path: str) -> str:
    """Skips the test where it is not installed."""
    folder = os.environ.get("WIRE_PEERS")
    program = Path(folder or "", path)
    if folder is None or not program.exists():
        pytest.skip(f"WIRE_PEERS names no folder with {path}")
    return str(program)


@contextmanager
def _running(
    command: Sequence[str], folder: Path, settings: Mapping[str, str], ready: str
) -> Generator[None]:
    """A server, from the line that says `ready`."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **settings}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        lines: list[str] = []
        is_ready = threading.Event()

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if ready in line:
                    is_ready.set()
            is_ready.set()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert is_ready.wait(_READY_S), f"not ready: {lines}"
            assert process.poll() is None, lines
            yield
        finally:
            process.kill()
            reader.join()


def _free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
