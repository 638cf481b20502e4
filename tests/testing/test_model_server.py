"""Tests `testing/apis.py`."""

import http.client
import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scripts.model_server import main


def test_a_script_is_served_to_each_thread_until_interrupted(tmp_path: Path):
    path = tmp_path / "script.json"
    path.write_text('[["Hello."], ["Again."]]', encoding="utf-8")
    program = subprocess.Popen(
        [sys.executable, "-m", "scripts.model_server", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert program.stdout is not None
    lines: list[str] = []
    while not lines or "wire_api" not in lines[-1]:
        lines.append(program.stdout.readline())
    configuration: Any = tomllib.loads("".join(lines))
    base_url: str = configuration["model_providers"]["mock"]["base_url"]
    port = urlsplit(base_url).port
    for thread in "ab":
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        body = {"input": [{"role": "user"}], "prompt_cache_key": thread, "stream": True}
        connection.request("POST", "/v1/responses", json.dumps(body))
        assert b"Hello." in connection.getresponse().read()
        # As after a compaction.
        body["input"] = [{"role": "developer"}]
        connection.request("POST", "/v1/responses", json.dumps(body))
        assert b"Again." in connection.getresponse().read()
        connection.close()
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=10)
    assert program.returncode == 130
    lines = err.splitlines()[:2]
    assert lines == [
        "POST /v1/responses, 70 bytes, 1 items, the last: user",
        "POST /v1/responses, 75 bytes, 1 items, the last: developer",
    ]
    assert err.splitlines() == lines * 2


def test_a_script_that_cannot_be_read_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "script.json").write_text("{}", encoding="utf-8")
    assert main([str(tmp_path / "script.json")]) == 1
    assert capsys.readouterr().err.endswith(
        "script.json: a script is a list of replies\n"
    )
    assert main([str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.endswith(
        "none cannot be read: No such file or directory\n"
    )


def test_a_port_that_is_none_is_an_error(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        main(["script.json", "--port", "99999"])
    assert "--port: '99999' is no port" in capsys.readouterr().err


def test_a_script_is_served_in_any_api(tmp_path: Path):
    path = tmp_path / "script.json"
    path.write_text(
        '[["Look:", {"type": "function_call", "call_id": "a", "name": "x", "arguments": {}}]]',
        encoding="utf-8",
    )
    program = subprocess.Popen(
        [sys.executable, "-m", "scripts.model_server", str(path), "--wire-api", "text"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert program.stdout is not None
    lines: list[str] = []
    while not lines or "wire_api" not in lines[-1]:
        lines.append(program.stdout.readline())
    configuration: Any = tomllib.loads("".join(lines))
    provider: dict[str, str] = configuration["model_providers"]["mock"]
    assert provider["wire_api"] == "text"
    port = urlsplit(provider["base_url"]).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    body = {"messages": [{"role": "user", "content": "go"}], "stream": True}
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    assert b"[DONE]" in connection.getresponse().read()
    connection.close()
    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=10)
    assert err == "POST /v1/chat/completions, 65 bytes, 1 messages, the last: user\n"
