"""`codex-py providers list` and `test`, `models list`, and `debug models`: print and try the
providers and the models that this program knows."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from codex_py.app.login_status import plan_facts
from codex_py.app.model import named_provider, pays_by_plan, provider_key
from codex_py.app.prices import price_of
from codex_py.app.providers.findings import findings_path, remember
from codex_py.app.providers.local_servers import listed_models
from codex_py.app.settings import provider_and_model
from codex_py.command_line.subcommand import command_config, command_parser, required
from codex_py.commands.providers.trial import TrialFinding, advice, tried
from codex_py.config.config import Config
from codex_py.config.declared.section import is_set
from codex_py.errors import CodexError, ConfigError, ModelError
from codex_py.instructions import instruction_text
from codex_py.model.catalog import catalog_models, in_form_of_codex, model_info
from codex_py.model.known_models import known_models, table_date
from codex_py.model.providers import Provider
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS, LOCAL_PROVIDERS
from codex_py.streams.standard import print_json, print_out, print_table, tell
from codex_py.streams.terminal import aligned, on_one_line

_WORKS = {True: "yes", False: "no", None: "?"}
_FACTS: Final = ("name", "wire_api", "base_url", "key", "has_key", "answers", "problem")


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print all providers. Returns the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    config = command_config(options, environment)
    found = listed_providers(config, environment)
    if options.json:
        return print_json(found, indent=2)
    rows = [_provider_row(provider) for provider in found]
    return print_table([("ID", "NAME", "API", "KEY", "ADDRESS"), *rows])


def run_models(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print all known models. Returns the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    config = command_config(options, environment)
    found = listed_models_of_all(config)
    if options.json:
        return print_json(found, indent=2)
    head = (
        "MODEL",
        "WINDOW",
        "OUTPUT",
        "PATCHES",
        "IMAGES",
        "EFFORT",
        "$/M IN",
        "CACHED",
        "OUT",
        "AS OF",
    )
    rows = [_model_row(model) for model in found]
    return print_table([head, *rows])


def run_catalogue(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run `debug models`: print the catalogue of models in Codex's format. Returns the exit code.

    It is the configured catalogue, or with `--bundled` this program's own.
    """
    options = command_parser("--bundled").parse_args(list(argv))
    config = command_config(options, environment)
    path = config.settings.model_catalog_json
    if options.bundled:
        path = None
    instructions = {"base_instructions": instruction_text("base.md")}
    models = [in_form_of_codex(model) | instructions for model in catalog_models(path)]
    return print_json({"models": models}, indent=2)


def run_test(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Try a provider, and remember what works. Returns the exit code."""
    parser = command_parser("--json", "name")
    parser.add_argument("-m", "--model")
    options = parser.parse_args(list(argv))
    name = required(options.name, "provider: codex-py providers test NAME")
    config = command_config(options, environment)
    provider = named_provider(config, name, environment)
    model = options.model or model_to_try(config, provider, environment)
    report: dict[str, Any] = {
        "provider": provider.id,
        "model": model,
        "findings": [],
        "error": None,
    }
    try:
        findings = asyncio.run(tried(config, provider, model, environment))
    except CodexError as error:
        remedy = advice(error, provider)
        if options.json:
            report["error"] = {
                "message": str(error),
                "code": error.code,
                "advice": remedy,
            }
            return print_json(report, indent=2) or error.exit_code
        tell(f"Error: {error}")
        if remedy is not None:
            tell(remedy)
        return error.exit_code
    works = {
        finding.ability: finding.works
        for finding in findings
        if finding.works is not None
    }
    today = datetime.now(UTC).date().isoformat()
    remember(provider, model, config.home, works, today)
    if options.json:
        report["findings"] = [asdict(finding) for finding in findings]
        return print_json(report, indent=2)
    return _print_findings(f"{provider.id}/{model}", findings, config)


def _print_findings(
    model: str,
    findings: Sequence[TrialFinding],
    config: Config,
) -> int:
    rows: list[tuple[str, str, str]] = []
    for finding in findings:
        row = (finding.ability, _WORKS[finding.works], on_one_line(finding.note))
        rows.append(row)
    lines = [on_one_line(model)]
    lines += [f"  {line.rstrip()}" for line in aligned(rows)]
    file = findings_path(config.home)
    lines.append(f"Sessions with this model go by that from now on: {file}")
    lines.append("A new test replaces it, and without the file nothing is remembered.")
    return print_out("\n".join(lines) + "\n")


def _provider_row(provider: Mapping[str, Any]) -> tuple[str, ...]:
    key = provider["key"] or "-"
    login = provider.get("login")
    if login is not None:
        key = f"ChatGPT {login['plan'] or 'plan'}"
    if login is not None and login["expired"] and not login["renewed"]:
        key += " expired"
    elif provider["has_key"] is True:
        key += " set"
    elif provider["has_key"] is False:
        key += " not set"
    address = provider["base_url"] or provider["problem"] or ""
    if provider["answers"] is True:
        address += " (answers)"
    elif provider["answers"] is False:
        address += " (does not answer)"
    return (
        provider["id"],
        provider["name"] or "",
        provider["wire_api"] or "",
        key,
        address,
    )


def _model_row(model: Mapping[str, Any]) -> tuple[str, ...]:
    prices: Mapping[str, float] = model["prices"] or {}
    return (
        f"{model['provider']}/{model['id']}",
        str(model["context_window"]),
        str(model["max_output_tokens"] or "-"),
        model["tools"],
        "yes" if model["images"] else "no",
        model["reasoning"] or "-",
        str(prices.get("input", "-")),
        str(prices.get("cached_input", "-")),
        str(prices.get("output", "-")),
        model["date"],
    )


def listed_providers(
    config: Config, environment: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Describe all providers. Asks local ones whether they run, which takes two seconds at most.

    `key` is the place of the provider's key: a variable, or the kind of another place. It is None
    if the provider needs no key. `has_key` is also None then, or if only a request can tell.
    `answers` is None for servers on other machines. `problem` is one sentence about why the
    provider cannot be used; if there is one, all fields but `id` may be None. `login` is there if a
    ChatGPT plan pays: its `kind` and `plan`, whether its token has `expired`, and whether the
    program has it `renewed`.
    """
    names = dict.fromkeys([*BUILT_IN_PROVIDERS, *config.model_providers])
    with ThreadPoolExecutor(len(LOCAL_PROVIDERS)) as pool:
        return list(pool.map(partial(_listed, config, environment), names))


def listed_models_of_all(config: Config) -> list[dict[str, Any]]:
    """Describe all known models, also those that only have prices set by the user.

    The models of the catalogue come first. `tools` is the form in which `apply_patch` is offered,
    `freeform` or `functions`. `reasoning` is the effort unless the user sets one. `date` is the day
    of the table of prices, or `config` if the user set the prices.

    Raises:
        ConfigError: the configured catalogue cannot be read.
    """
    catalog = config.settings.model_catalog_json
    own_prices = config.settings.model_prices
    providers = {model.slug: "openai" for model in catalog_models(catalog)}
    outputs: dict[str, int | None] = {}
    for model in known_models():
        providers[model.slug] = model.provider
        outputs[model.slug] = model.output
    for name in own_prices:
        provider, _ = provider_and_model(config, name)
        providers[name] = provider
    rows: list[dict[str, Any]] = []
    for name, provider in providers.items():
        info = model_info(name, catalog)
        prices = price_of(config, name, provider)
        date = "config" if name in own_prices else str(table_date())
        row = {
            "id": name.removeprefix(f"{provider}/"),
            "provider": provider,
            "context_window": info.context_window,
            "max_output_tokens": info.max_output_tokens or outputs.get(name),
            "tools": "freeform" if info.freeform_apply_patch else "functions",
            "images": info.images,
            "reasoning": info.default_reasoning_effort,
            "prices": prices and asdict(prices),
            "date": date,
        }
        rows.append(row)
    return rows


def model_to_try(
    config: Config,
    provider: Provider,
    environment: Mapping[str, str],
) -> str:
    """Choose a model of a provider: the configured one, else one that it is known to have.

    Raises:
        ModelError: a server on this machine does not answer.
        ConfigError: no model is known.
    """
    if config.model_provider == provider.id and is_set(config.settings, "model"):
        return config.model
    if provider.id in LOCAL_PROVIDERS:
        models = listed_models(provider, config, environment)
        if models:
            return models[0].id
    else:
        for model in known_models():
            if model.provider == provider.id:
                return model.slug
    raise ConfigError(
        f"say which model to try: codex-py providers test {provider.id} --model MODEL"
    )


def _listed(
    config: Config,
    environment: Mapping[str, str],
    name: str,
) -> dict[str, Any]:
    """Describe a provider; see `listed_providers`."""
    facts: dict[str, Any] = {"id": name, **dict.fromkeys(_FACTS)}
    try:
        provider = named_provider(config, name, environment)
        facts["name"] = provider.name
        facts["wire_api"] = provider.wire_api
        facts["base_url"] = provider.shown_url
        facts["key"], facts["has_key"] = _key(config, provider, environment)
        facts |= _login(config, provider, environment)
        if name in LOCAL_PROVIDERS:
            facts["answers"] = False
            listed_models(provider, config, environment)
            facts["answers"] = True
    except (ConfigError, ModelError) as error:
        facts["problem"] = str(error)
    return facts


def _login(
    config: Config, provider: Provider, environment: Mapping[str, str]
) -> Mapping[str, Any]:
    """The facts `login` and `base_url` of a provider that a ChatGPT plan pays; empty for others."""
    if not pays_by_plan(config, provider, environment):
        return {}
    key = provider_key(config, provider, environment)
    assert key is not None
    found = plan_facts(key)
    login = {
        "kind": "chatgpt",
        "plan": found.plan or None,
        "expired": found.has_expired,
        "renewed": found.is_renewed,
    }
    return {"login": login, "base_url": provider.for_tokens().shown_url}


def _key(
    config: Config,
    provider: Provider,
    environment: Mapping[str, str],
) -> tuple[str | None, bool | None]:
    """The facts `key` and `has_key` of a provider; see `listed_providers`."""
    if provider.env_key is None and provider.auth is not None:
        return "auth.command", None
    try:
        key = provider_key(config, provider, environment)
    except (ModelError, ConfigError):
        return provider.env_key or "OPENAI_API_KEY", False
    if provider.env_key is not None:
        return provider.env_key, True
    if key is None:
        return None, None
    # The last word is the variable, or the name of the file.
    place = key.source.rpartition(" ")[2]
    return place, True
