"""`codex-py providers list` and `test`, `models list`, and `debug models`."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from codex_py.app.model import named_provider
from codex_py.app.providers.findings import remember
from codex_py.command_line.subcommand import command_config, command_parser, print_table, required
from codex_py.commands.providers.listing import (
    catalogue_of_codex,
    listed_models_of_all,
    listed_providers,
    model_to_try,
)
from codex_py.commands.providers.trial import advice, tried
from codex_py.errors import CodexError
from codex_py.streams.standard import print_json, print_out, tell
from codex_py.streams.terminal import aligned, on_one_line

_WORKS = {True: "yes", False: "no", None: "?"}


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print all providers; the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    found = listed_providers(command_config(options, environment), environment)
    if options.json:
        return print_json(found, indent=2)
    return print_table([("ID", "NAME", "API", "KEY", "ADDRESS"), *map(_provider_row, found)])


def run_models(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print all models that something is known of; the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    found = listed_models_of_all(command_config(options, environment))
    if options.json:
        return print_json(found, indent=2)
    head = ("MODEL", "WINDOW", "OUTPUT", "PATCHES", "IMAGES", "EFFORT", "$/M IN", "CACHED", "OUT")
    return print_table([(*head, "AS OF"), *map(_model_row, found)])


def run_catalogue(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the catalogue of models, as Codex has it; the exit code. This is `debug models`."""
    options = command_parser("--bundled").parse_args(list(argv))
    config = command_config(options, environment)
    return print_json(catalogue_of_codex(config, bundled=options.bundled), indent=2)


def run_test(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Try a provider, and remember what works; the exit code."""
    parser = command_parser("--json", "name")
    parser.add_argument("-m", "--model")
    options = parser.parse_args(list(argv))
    name = required(options.name, "provider: codex-py providers test NAME")
    config = command_config(options, environment)
    provider = named_provider(config, name, environment)
    model = options.model or model_to_try(config, provider, environment)
    report: dict[str, Any] = {"provider": provider.id, "model": model, "findings": []}
    try:
        findings = asyncio.run(tried(config, provider, model, environment))
    except CodexError as error:
        if options.json:
            facts = {"message": str(error), "code": error.code, "advice": advice(error, provider)}
            return print_json({**report, "error": facts}, indent=2) or error.exit_code
        tell(f"Error: {error}")
        if (text := advice(error, provider)) is not None:
            tell(text)
        return error.exit_code
    works = {each.ability: each.works for each in findings if each.works is not None}
    remember(provider, model, config.home, works, datetime.now(UTC).date().isoformat())
    if options.json:
        facts = [asdict(finding) for finding in findings]
        return print_json({**report, "findings": facts, "error": None}, indent=2)
    lines = aligned([(f.ability, _WORKS[f.works], on_one_line(f.note)) for f in findings])
    text = "".join(f"  {line.rstrip()}\n" for line in lines)
    return print_out(f"{on_one_line(f'{provider.id}/{model}')}\n{text}")


def _provider_row(provider: Mapping[str, Any]) -> tuple[str, ...]:
    key = {True: "set", False: "not set", None: ""}[provider["has_key"]]
    address = provider["base_url"] or provider["problem"] or ""
    if provider["answers"] is not None:
        address += " (answers)" if provider["answers"] else " (does not answer)"
    key = f"{provider['key'] or '-'} {key}".strip()
    return (provider["id"], provider["name"] or "", provider["wire_api"] or "", key, address)


def _model_row(model: Mapping[str, Any]) -> tuple[str, ...]:
    prices: Mapping[str, float] = model["prices"] or {}
    return (
        f"{model['provider']}/{model['id']}",
        str(model["context_window"]),
        str(model["max_output_tokens"] or "-"),
        model["tools"],
        "yes" if model["images"] else "no",
        model["reasoning"] or "-",
        *(str(prices.get(name, "-")) for name in ("input", "cached_input", "output")),
        model["date"],
    )
