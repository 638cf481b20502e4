"""`codex-py exec`: one prompt, no questions, an exit code. The module `exec_run` does the work."""

from collections.abc import Mapping

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.prompt_input import exec_stderr, start_reading
from codex_py.command_line.target import exec_target, require_images


def run_exec(arguments: Arguments, environment: Mapping[str, str]) -> int:
    """Work on the prompt. Returns the exit code."""
    target = exec_target(arguments)
    require_images(arguments, target)
    stderr = exec_stderr()
    prompt = None
    # A prompt is optional for a fork, as in Codex, and for the answer to a waiting call.
    has_call = any(each.begins_with_call for each in arguments.of_extensions)
    is_optional = target.fork or has_call
    if target.prompt is not None or not is_optional:
        prompt = start_reading(
            target.prompt,
            notice=lambda text: stderr.write_text(f"{text}\n"),
            # As in Codex, a resumed thread does not read piped input.
            piped=target.resume is None and not target.resume_last,
        )
    # During this import, an open pipe may already deliver its first byte.
    from codex_py.frontends.exec.exec_run import run_prompt  # 80 ms

    return run_prompt(arguments, target, environment, prompt, stderr)
