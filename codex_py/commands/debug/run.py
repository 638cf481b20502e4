"""`codex-py debug prompt-input`: the next request of a session."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.app.options import SessionOptions
from codex_py.app.settings import configured_choices
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import read_config
from codex_py.command_line.parser import CommandParser, given
from codex_py.commands.debug.next_request import next_request
from codex_py.errors import UsageError
from codex_py.streams.standard import print_json

_OPTIONS: Final = {"overrides", "model", "profile", "sandbox", "cd", "image", "last", "plan"}


def run_prompt_input(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the input of the next request, or its whole body; the exit code."""
    parser = CommandParser(Arguments, only=_OPTIONS)
    parser.add_argument("--resume")
    parser.add_argument("--body", action="store_true")
    parser.add_argument("prompt", nargs="?")
    options = given(parser.parse_args(list(argv)))
    resume, body = options.pop("resume", None), options.pop("body")
    prompt: str | None = options.pop("prompt", None)
    if body and not prompt:
        raise UsageError("--body needs a prompt: without one, there is no next request")
    arguments = Arguments(**options)
    config = read_config(arguments, environment)
    target = SessionOptions(
        resume=resume,
        resume_last=arguments.last,
        choices=replace(configured_choices(config, ()), mode="plan") if arguments.plan else None,
    )
    request = next_request(
        config,
        target,
        prompt,
        images=[Path(name).absolute() for name in arguments.image],
        environment=environment,
        starts_servers=body,
    )
    seen, sent = asyncio.run(request)
    return print_json(sent if body else seen, indent=2, ensure_ascii=False)
