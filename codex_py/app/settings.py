"""Makes the settings of turns from the configuration and the model catalogue.

Part of the composition root.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.app.features.plan_mode import planning_choices
from codex_py.app.options import SessionSetup
from codex_py.app.prices import price_of
from codex_py.app.providers.meant_models import doubted_provider, similar_model
from codex_py.config.config import Config
from codex_py.config.declared.section import raw
from codex_py.config.declared.tools import WebSearch
from codex_py.config.model_name import split_model
from codex_py.errors import ConfigError
from codex_py.model.catalog import (
    EFFORTS,
    ModelInfo,
    catalog_models,
    in_form_of_codex,
    model_info,
)
from codex_py.model.known_models import known_model, known_models
from codex_py.model.providers import Provider, key_variable
from codex_py.protocol.approval import ApprovalPolicy
from codex_py.protocol.frozen import frozen
from codex_py.protocol.image_rule import image_rule
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS
from codex_py.protocol.settings import Choices, TurnSettings
from codex_py.protocol.stream import Abilities
from codex_py.protocol.tools import ToolSpec
from codex_py.tools.offered import tool_specs

_UNKNOWN_MODEL = (
    "Model metadata for `{}` not found. Defaulting to fallback metadata; this can degrade"
    " performance and cause issues. A window of {:,} tokens is assumed; `model_context_window` sets"
    " it."
)
_MISSPELT: Final = 0.9
"""The similarity at which a name is taken for a misspelt known one: `gpt5.5`, but no name with
another number."""
PlanModels: TypeAlias = Sequence[ModelInfo] | None
"""The models of a ChatGPT plan; None if there is no such list."""
_COMPACT_AT_PERCENT = 90
"""The percentage of the model's window, as in Codex. A configured limit applies only if it is
lower."""


def selectable_models(
    config: Config,
    environment: Mapping[str, str],
    plan: PlanModels = None,
) -> list[str]:
    """Return the models that the user can choose, the configured one first.

    Models of other providers with a key are named `provider/model`.

    Args:
        plan: the models of the ChatGPT plan that pays for the configured provider, which are
            listed in place of those that the program knows; None: there is no such list.

    Raises:
        ConfigError: the configured catalogue cannot be read.
    """
    own: list[str] = []
    others: list[str] = []
    for model in known_models():
        if model.provider == config.model_provider:
            own.append(model.slug)
            continue
        variable = key_variable(model.provider, config.model_providers)
        if environment.get(variable or ""):
            others.append(f"{model.provider}/{model.slug}")
    if plan is not None:
        own = [model.slug for model in plan]
    elif config.model_provider == "openai" or not own:
        own = _openai_models(config)
    return list(dict.fromkeys([config.model, *own, *others]))


def _openai_models(config: Config) -> list[str]:
    """The models of the catalogue, which is OpenAI's unless the user has another one."""
    own_catalog = config.settings.model_catalog_json
    slugs = [model.slug for model in catalog_models(own_catalog)]
    if own_catalog is not None:
        return slugs
    # An entry of the catalogue can stand for several models, which the table lists.
    full = [model.slug for model in known_models() if model.provider == "openai"]
    for slug in slugs:
        if not any(name.startswith(slug) for name in full):
            full.append(slug)
    return full


@frozen
class ModelChoice:
    """A model that the user can choose."""

    provider: str
    name: str
    about: str
    """A description: the model's name, its purpose, its prices, its window. It comes from files, so
    it is not safe for a terminal."""
    is_known: bool
    efforts: Sequence[str]
    """The efforts that the user can choose."""

    def check_effort(self, effort: str) -> str:
        """Return a sentence if the model may not have an effort, else an empty text.

        Raises:
            ConfigError: no model has the effort, or this model has no efforts.
        """
        if not self.efforts:
            raise ConfigError(f"{self.name} cannot be asked for an effort")
        listed = f"{self.name} is known to have the efforts {', '.join(self.efforts)}"
        if effort not in EFFORTS:
            if self.is_known:
                raise ConfigError(f"{listed}, and not {effort!r}")
            raise ConfigError(f"{effort!r} is no effort")
        if effort in self.efforts:
            return ""
        return f"{listed}."


def model_choice(config: Config, model: str, plan: PlanModels = None) -> ModelChoice:
    """Describe a model. Raises the errors of `selectable_models`.

    Args:
        model: one of `selectable_models`, or any other.
        plan: see `selectable_models`.
    """
    provider, name = provider_and_model(config, model)
    info = _model_info(config, name, plan)
    known = known_model(name)
    parts: list[str] = []
    if info.display_name.lower() != name.lower():
        parts.append(info.display_name)
    if info.about:
        parts.append(info.about)
    elif known is not None:
        parts.append(known.about)
    price = price_of(config, name, provider)
    is_paid_by_plan = plan is not None and provider == config.model_provider
    if price is not None and not is_paid_by_plan:
        parts.append(f"${price.input:g} in, ${price.output:g} out per M")
    window = config.model_context_window
    if not window and info.known:
        window = info.context_window
    if window:
        parts.append(f"{_short_number(window)} window")
    about = " · ".join(filter(None, parts))
    efforts = EFFORTS if info.efforts is None else info.efforts
    return ModelChoice(provider, name, about, info.known, efforts)


def _short_number(tokens: int) -> str:
    """A number of tokens, such as `200k` or `1M`."""
    if tokens >= 1_000_000:
        return f"{tokens / 1e6:.2g}M"
    return f"{tokens // 1000}k"


def provider_and_model(config: Config, name: str) -> tuple[str, str]:
    """Split `PROVIDER/MODEL`. Any other name means a model of the configured provider."""
    named = split_model(name, {*BUILT_IN_PROVIDERS, *config.model_providers})
    return named or (config.model_provider, name)


def described_models(
    config: Config,
    environment: Mapping[str, str],
    plan: PlanModels = None,
) -> list[dict[str, Any]]:
    """Return the `selectable_models` in the form of Codex's catalogue; see `in_form_of_codex`."""
    names = selectable_models(config, environment, plan)
    return [in_form_of_codex(_model_info(config, name, plan)) for name in names]


def _model_info(config: Config, name: str, plan: PlanModels) -> ModelInfo:
    """The facts about a model: those that the plan lists, or those that the program knows."""
    for model in plan or ():
        if model.slug == name:
            return model
    return model_info(name, config.settings.model_catalog_json)


def model_of_provider(config: Config, model: str) -> str:
    """Return the model without the provider that may be named before it.

    Raises:
        ConfigError: the model belongs to another provider than the configured one.
    """
    own = config.model_provider
    named = split_model(model, {*BUILT_IN_PROVIDERS, *config.model_providers})
    if named is not None:
        provider, name = named
        if provider == own:
            return name
        if "/" in config.model:
            # Models of this provider are named with their publishers, which may have the names of
            # other providers.
            return model
        raise _of_another(provider, own)
    known = known_model(model)
    if known is None or known.provider == own:
        return model
    # A provider without known models may serve the models of any other provider.
    if any(each.provider == own for each in known_models()):
        raise _of_another(known.provider, own)
    return model


def _of_another(provider: str, own: str) -> ConfigError:
    return ConfigError(f"it is one of {provider}, and this conversation is with {own}")


def configured_choices(config: Config, add_dirs: Sequence[Path]) -> Choices:
    """Return the choices in the configuration. `add_dirs`: writable folders besides those in it."""
    return Choices(
        model=config.model,
        reasoning_effort=config.model_reasoning_effort,
        reasoning_summary=config.settings.model_reasoning_summary,
        approval_policy=config.approval_policy or ApprovalPolicy.ON_REQUEST,
        sandbox_policy=config.sandbox_policy(add_dirs),
    )


def turn_settings(
    setup: SessionSetup, provider: Provider, choices: Choices
) -> TurnSettings:
    """Return the settings that follow from a user's choices.

    Warns about a model that the catalogue does not have, or that seems to name a provider.
    """
    config = setup.config
    chosen = _held_choices(setup, choices)
    choices = chosen
    if choices.mode == "plan":
        choices = planning_choices(config, choices)
    info = model_info(choices.model, config.settings.model_catalog_json)
    window = config.model_context_window or info.context_window
    _warn_of_model(setup, provider, info, window)
    # A fallback may have another window.
    has_own_window = info.known or config.model_context_window
    is_known = has_own_window and not config.model_fallbacks
    max_output_tokens = config.model_max_output_tokens
    if not max_output_tokens and provider.wire_api == "anthropic":
        # The Messages API is the only one that requires a limit.
        max_output_tokens = info.max_output_tokens
    parallel_tool_calls = config.settings.parallel_tool_calls
    if parallel_tool_calls is None:
        parallel_tool_calls = info.parallel_tool_calls
    return TurnSettings(
        model=info.slug,
        provider=provider.id,
        cwd=config.cwd,
        approval_policy=choices.approval_policy,
        sandbox_policy=choices.sandbox_policy,
        context_window=window * info.effective_context_window_percent // 100,
        known_window=window if is_known else None,
        reasoning_effort=choices.reasoning_effort,
        reasoning_summary=choices.reasoning_summary,
        reasoning=_reasoning(choices, info),
        max_output_tokens=max_output_tokens or None,
        abilities=Abilities(images=info.images, thinking=info.thinking),
        verbosity=_verbosity(config, info),
        service_tier=config.settings.service_tier,
        image_rule=image_rule(info.image_detail, provider.wire_api),
        tools=_tools(config, info),
        parallel_tool_calls=parallel_tool_calls,
        compact_prompt=config.compact_prompt,
        auto_compact_token_limit=_compact_at(config, window),
        mode=choices.mode,
        chosen=chosen if choices.mode == "plan" else None,
    )


def _held_choices(setup: SessionSetup, choices: Choices) -> Choices:
    """The choices as the administrator allows them. Warns of what becomes different."""
    held = setup.config.requirements.held_choices(choices)
    if setup.options.parent is not None:
        return held
    for asked, given in (
        (choices.sandbox_policy.mode, held.sandbox_policy.mode),
        (choices.approval_policy, held.approval_policy),
    ):
        if asked != given:
            setup.warn(
                f"The administrator does not allow `{asked}`: it is `{given}` instead."
            )
    return held


def _warn_of_model(
    setup: SessionSetup, provider: Provider, info: ModelInfo, window: int
) -> None:
    """Warn of a model that is not known, or that seems to name a provider."""
    warning = doubted_provider(provider, info.slug, setup.config.model_providers)
    if warning is not None:
        setup.warn(warning)
    if not info.known:
        unknown = _UNKNOWN_MODEL.format(info.slug, window)
        similar = similar_model(provider.id, info.slug)
        if similar is not None:
            unknown += f" Did you mean {similar}?"
        setup.warn(unknown)


def _reasoning(choices: Choices, info: ModelInfo) -> dict[str, str] | None:
    """Return the `reasoning` of a request; None leaves it to the model."""
    reasoning: dict[str, str] = {}
    effort = choices.reasoning_effort or info.default_reasoning_effort
    if effort == "ultra":
        effort = info.ultra_effort
    if effort is not None:
        reasoning["effort"] = effort
    summary = choices.reasoning_summary
    if not summary and not info.known:
        summary = "auto"
    if summary and summary != "none":
        reasoning["summary"] = summary
    return reasoning or None


def _compact_at(config: Config, window: int) -> int:
    """The number of tokens from which a history is compacted."""
    limit = window * _COMPACT_AT_PERCENT // 100
    if config.model_auto_compact_token_limit:
        return min(limit, config.model_auto_compact_token_limit)
    return limit


def _verbosity(config: Config, info: ModelInfo) -> str | None:
    """The verbosity to ask for; None if the model has no such option."""
    if info.default_verbosity is None:
        return None
    return config.settings.model_verbosity or info.default_verbosity


def _tools(config: Config, info: ModelInfo) -> tuple[ToolSpec, ...]:
    """The tools that the model is offered."""
    shell = info.shell_tool
    if config.features.shell_tool is False:
        shell = "disabled"
    return tool_specs(
        shell=shell,
        login=config.settings.allow_login_shell,
        freeform_patch=info.freeform_apply_patch,
        left_out=_left_out(config, info),
        web_search=_web_search(config, info),
    )


def _left_out(config: Config, info: ModelInfo) -> list[str]:
    """The names of the tools that are not offered."""
    names: list[str] = []
    if config.settings.tools.update_plan.enabled is False:
        names.append("update_plan")
    if config.features.view_image is False or not info.images:
        names.append("view_image")
    return names


def _web_search(config: Config, info: ModelInfo) -> dict[str, Any] | None:
    """The options of the provider's web search; None if it is off."""
    if config.web_search == "disabled":
        return None
    search: dict[str, Any] = {"external_web_access": config.web_search == "live"}
    if info.known:
        search["search_content_types"] = ["text", "image"]
    configured = config.settings.tools.web_search
    if not isinstance(configured, WebSearch):
        return search
    if configured.allowed_domains:
        search["filters"] = {"allowed_domains": list(configured.allowed_domains)}
    location = raw(configured.location)
    if location:
        search["user_location"] = {"type": "approximate", **location}
    if configured.context_size:
        search["search_context_size"] = configured.context_size
    return search
