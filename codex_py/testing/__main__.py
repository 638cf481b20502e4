"""Serve a script by hand: `python -m codex_py.testing SCRIPT.json [--port PORT]`.

Every thread gets the script from its beginning, so that several programs, or one several times, can be
compared against the same server.
"""

import argparse
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from codex_py.testing.script import load_script
from codex_py.testing.server import RecordedRequest, ScriptedServer


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m codex_py.testing",
        description="Answer the requests of codex-py, or of Codex, from a script.",
        epilog="The script is a JSON list with a list for each reply: texts, and items of the "
        "Responses API. codex_py/testing/script.py describes all of it.",
    )
    parser.add_argument("script", type=Path, metavar="SCRIPT.json")
    parser.add_argument("--port", type=_port, default=0, help="default: a free one")
    arguments = parser.parse_args(argv)
    try:
        replies = load_script(arguments.script)
        server = ScriptedServer(replies, port=arguments.port, each_thread=True, watch=_report)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"Error: {_words(error)}\n")
        return 1
    sys.stdout.write(f"# Into config.toml; and: export MOCK_KEY=any\n{server.config_toml()}\n")
    sys.stdout.flush()
    server.start()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        # Violations were printed as they came.
        return 130
    return 0


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 0xFFFF:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be read: {error.strerror}"
    return str(error)


def _report(request: RecordedRequest, problem: str | None) -> None:
    """A line for a request: how long its input is, and what came last."""
    line = f"{request.method} {request.path}, {len(request.raw)} bytes"
    if problem is not None:
        line += f": {problem}"
    elif request.path.endswith("/responses") and request.input:
        last = request.input[-1]
        line += f", {len(request.input)} items, the last: {last.get('role') or last.get('type')}"
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
