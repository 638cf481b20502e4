"""Run codex-py and write down each function of it that is entered: `python trace.py FILE ARGUMENT…`.

A line of the file has, with tabs between them: a time in seconds of `time.monotonic`, the number of functions of
codex-py around this one, `begins` or `continues` (behind an `await` or a `yield`), and the function's name, file and
line. It is run by path, with the Python of the program that is measured.
"""

import inspect
import os
import sys
import threading
import time
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

_FLUSH_BYTES = 1 << 20
_RESUME_PLACE = 3
"""The bits of the argument of `RESUME` that are 0 at the start of a function."""


class Trace:
    """Counts functions of the package alone: no bodies of modules and classes, no lambdas and no comprehensions."""

    def __init__(self, file: Path, package: Path) -> None:
        self._stream = file.open("w", _FLUSH_BYTES, encoding="utf-8")
        self._package = f"{package}{os.sep}"
        self._places: dict[CodeType, str | None] = {}

    def start(self) -> None:
        os.register_at_fork(after_in_child=self._stop)
        threading.setprofile(self._entered)
        sys.setprofile(self._entered)

    def flush(self) -> None:
        self._stream.flush()

    def _stop(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)

    def _entered(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        place = self._place(frame.f_code)
        if place is not None:
            how = "begins" if _begins(frame) else "continues"
            depth = self._depth(frame)
            self._stream.write(f"{time.monotonic()}\t{depth}\t{how}\t{place}\n")

    def _depth(self, frame: FrameType) -> int:
        depth = 0
        around = frame.f_back
        while around is not None:
            if self._place(around.f_code) is not None:
                depth += 1
            around = around.f_back
        return depth

    def _place(self, code: CodeType) -> str | None:
        """The name, file and line of a function that counts; None of any other code."""
        if code not in self._places:
            self._places[code] = self._described(code)
        return self._places[code]

    def _described(self, code: CodeType) -> str | None:
        is_function = code.co_flags & inspect.CO_OPTIMIZED
        is_named = not code.co_name.startswith("<")
        if not (
            is_function and is_named and code.co_filename.startswith(self._package)
        ):
            return None
        module = code.co_filename.removeprefix(self._package)
        return f"{code.co_qualname}\t{module}\t{code.co_firstlineno}"


@cache
def _instructions(code: CodeType) -> bytes:
    """The instructions, which Python copies for each caller."""
    return code.co_code


def _begins(frame: FrameType) -> bool:
    """False if the function continues behind an `await` or a `yield`, as its `RESUME` instruction says."""
    argument = _instructions(frame.f_code)[frame.f_lasti + 1]
    return not argument & _RESUME_PLACE


def main() -> None:
    file = Path(sys.argv[1])
    sys.argv[:2] = ["codex-py"]
    # The folder of this file, whose modules are not for the program.
    del sys.path[0]
    import codex_py.__main__ as program  # noqa: PLC0415 - found only now

    assert program.__file__ is not None
    trace = Trace(file, Path(program.__file__).parent)
    leave = os._exit

    def leave_with_trace(code: int) -> NoReturn:
        sys.setprofile(None)
        trace.flush()
        leave(code)

    os._exit = leave_with_trace
    trace.start()
    program.main()


if __name__ == "__main__":
    main()
