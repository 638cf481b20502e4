"""A run of `codex-py exec` that an extension makes in its own way, in the place of the command.

`Options.run` begins one: `exec_target` of `api.options` reads the words of the command line,
`require_images` checks the files of `--image`, `exec_stderr` opens standard error, and `start_reading`
reads the prompt meanwhile, as a `Future` of its text. `decode_prompt` decodes a prompt from elsewhere.

`ExecProgram` reads the configuration and has the streams. `ExecProgram.run` runs the work and returns the
exit code; a signal, or a reader of standard output who leaves, cancels the work. `warn` tells the user
something, and `deliver` gives the last message to where the options want it. `load_exec_config` reads
the configuration for other options, such as those of one of several agents.
"""

from codex_py.command_line.configuration import load_exec_config
from codex_py.command_line.exec_program import ExecProgram
from codex_py.command_line.prompt_input import decode_prompt, exec_stderr, start_reading
from codex_py.command_line.target import require_images

__all__ = [
    "ExecProgram",
    "decode_prompt",
    "exec_stderr",
    "load_exec_config",
    "require_images",
    "start_reading",
]
