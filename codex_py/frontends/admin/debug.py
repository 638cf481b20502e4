"""`codex-py debug`: the catalogue of models, and the next request of a session."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.app.next_request import next_request
from codex_py.app.options import SessionOptions
from codex_py.app.providers.listing import catalogue_of_codex
from codex_py.app.settings import configured_choices
from codex_py.frontends.admin.command import command_config, command_parser
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.command_parser import CommandParser, UsageError, given
from codex_py.frontends.configuration import read_config
from codex_py.frontends.streams import print_json, tell

_OPTIONS: Final = {"overrides", "model", "profile", "sandbox", "cd", "image", "last", "plan"}


def run_models(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the catalogue of models; the exit code."""
    options = command_parser("--bundled").parse_args(list(argv))
    config = command_config(options, environment)
    return print_json(catalogue_of_codex(config, bundled=options.bundled), indent=2)


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
        warn=lambda text: tell(f"Warning: {text}"),
    )
    seen, sent = asyncio.run(request)
    return print_json(sent if body else seen, indent=2, ensure_ascii=False)
