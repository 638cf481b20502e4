"""`codex-py exec`: one prompt, no questions, an exit code. This module begins to read the prompt; `run` does the work."""

from collections.abc import Mapping

from codex_py.app.loading import load
from codex_py.frontends.arguments import Arguments, exec_target
from codex_py.frontends.exec.prompt_input import start_reading
from codex_py.frontends.streams import OutputStream

_STDERR_TIMEOUT_S = 2.0
"""A caller that reads standard output alone must not stop us when the other pipe is full."""


def run_exec(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Work on the prompt; the exit code."""
    target = exec_target(arguments)
    stderr = OutputStream(2, timeout_s=_STDERR_TIMEOUT_S)
    prompt = start_reading(
        target.prompt,
        notice=lambda text: stderr.write_text(f"{text}\n"),
        # As in Codex, which leaves standard input alone where a thread goes on.
        piped=target.resume is None and not target.resume_last,
    )
    # This takes some 80 ms, in which an open pipe may already say something.
    run = load("codex_py.frontends.exec.run:run")
    return run(arguments, target, environment, prompt=prompt, stderr=stderr)
