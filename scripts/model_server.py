"""Serve a script by hand: `scripts/model-server SCRIPT.json [--port PORT]`.

Every thread gets the script from its beginning, so that several programs, or one several times, can be
compared against the same server.
"""

import argparse
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from codex_py.testing.request import RecordedRequest
from scripts.model_script import load_script
from tests.support.server import ScriptedServer


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/model-server",
        description="Answer the requests of codex-py, or of Codex, from a script.",
        epilog="The script is a JSON list with a list for each reply: texts, and items of the "
        "Responses API. scripts/model_script.py describes all of it.",
    )
    parser.add_argument("script", type=Path, metavar="SCRIPT.json")
    parser.add_argument("--port", type=_port, default=0, help="default: a free one")
    parser.add_argument(
        "--wire-api",
        choices=("responses", "chat", "anthropic", "text"),
        default="responses",
        help="the API in the configuration that is printed (default: responses); all are served, and "
        "with `text` the model writes its calls into its answers",
    )
    arguments = parser.parse_args(argv)
    try:
        replies = load_script(arguments.script)
        server = ScriptedServer(
            replies,
            port=arguments.port,
            text_tools=arguments.wire_api == "text",
            each_thread=True,
            # Who sits before it may compact a conversation, or go back in it.
            check_prefix=False,
            watch=_report,
        )
    except (OSError, ValueError) as error:
        sys.stderr.write(f"Error: {_words(error)}\n")
        return 1
    configuration = server.config_toml(wire_api=arguments.wire_api)
    sys.stdout.write(f"# Into config.toml; and: export MOCK_KEY=any\n{configuration}\n")
    sys.stdout.flush()
    try:
        server.start()
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
    else:
        # What is served anywhere else may be no JSON.
        with suppress(ValueError):
            kind = "items" if "input" in request.fields else "messages"
            if entries := request.fields.get("input") or request.fields.get("messages"):
                last = entries[-1].get("role") or entries[-1].get("type")
                line += f", {len(entries)} {kind}, the last: {last}"
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
