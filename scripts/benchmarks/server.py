"""The scripted model in a process of its own, so that its work is not done on our time."""

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Self

from codex_py.testing.server import Script
from tests.support.server import ScriptedServer


class BenchmarkServer:
    """Use it as a context manager."""

    def __init__(self) -> None:
        # Spawned, not forked: what it renders may be large, and is not to be in our memory.
        spawn = multiprocessing.get_context("spawn")
        self._control, other_end = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(other_end,), daemon=True)
        self._process.start()
        # Else the pipe would not end when the process does.
        other_end.close()

    def play(
        self,
        make: Callable[..., Sequence[Script]],
        *args: Any,
        wire_api: str | None = None,
    ) -> str:
        """Answer the next requests with `make(*args)`, which is called over there.

        The configuration that sends an agent to it. Each call opens another port.
        """
        self._control.send((make, args, wire_api))
        return self._control.recv()

    def arrivals(self) -> list[float]:
        """When the heads of the requests since `play` were complete.

        In seconds of `time.monotonic`, which is one clock for all processes.
        """
        self._control.send(None)
        return self._control.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._process.join()


def _serve(control: Connection) -> None:
    server = ScriptedServer()
    # The end of the pipe is the end of the benchmark.
    with suppress(EOFError):
        while True:
            order = control.recv()
            if order is None:
                control.send([request.received_s for request in server.requests])
                continue
            server.close()
            make, args, wire_api = order
            # What holds of requests is for tests to check.
            server = ScriptedServer(
                make(*args),
                check_calls=False,
                check_prefix=False,
                text_tools=wire_api == "text",
            )
            server.start()
            # A native Codex would report about every turn.
            control.send(
                f"analytics.enabled = false\n{server.config_toml(wire_api=wire_api)}"
            )
