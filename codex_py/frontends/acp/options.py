"""The choices of a client for a session: permissions and Plan mode, the model, and its effort."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.app.json_rpc import INVALID_PARAMS, RpcError
from codex_py.app.permissions import EFFORTS, PERMISSIONS, allowed_permissions
from codex_py.app.settings import model_of_provider, selectable_models
from codex_py.config.config import Config
from codex_py.errors import ConfigError
from codex_py.protocol.frozen import frozen
from codex_py.protocol.settings import Choices

_Json: TypeAlias = dict[str, Any]


@frozen
class _Value:
    """A value that an option can have."""

    id: str
    name: str
    note: str = ""


@frozen
class _Option:
    name: str
    category: str
    """The kind of option, in ACP's words: clients choose an icon by it."""
    current: str
    values: Sequence[_Value]


_PLAN: Final = _Value("plan", "Plan", "looks and asks, and changes nothing")
_CONFIGURED: Final = _Value(
    "configured",
    "As configured",
    "the permissions of the configuration",
)
_DEFAULT: Final = "default"
"""The effort that the provider chooses."""


@frozen
class EditorOptions:
    """The options of a session: the mode, the model and the effort."""

    config: Config
    configured: Choices
    """The choices that the session begins with."""
    models: Sequence[str]
    """The models that can be chosen."""
    add_dirs: tuple[Path, ...]

    def shown(self, choices: Choices) -> list[_Json]:
        """All options with their current values, as ACP has them."""
        shown: list[_Json] = []
        for option_id, option in self._options(choices).items():
            values = [
                {"value": value.id, "name": value.name, "description": value.note}
                for value in option.values
            ]
            shown.append(
                {
                    "type": "select",
                    "id": option_id,
                    "name": option.name,
                    "category": option.category,
                    "currentValue": option.current,
                    "options": values,
                }
            )
        return shown

    def modes(self, choices: Choices) -> _Json:
        """The option `mode`, in the format for older clients."""
        mode = self._mode(choices)
        modes = [
            {"id": value.id, "name": value.name, "description": value.note}
            for value in mode.values
        ]
        return {"currentModeId": mode.current, "availableModes": modes}

    def chosen(
        self,
        choices: Choices,
        option: str,
        value: str,
    ) -> Choices:
        """Put a value into the choices. Raises an `RpcError` if the option or value is unknown."""
        known = self._options(choices).get(option)
        values = [each.id for each in known.values] if known else []
        if value not in values:
            can_be = "no such option"
            if values:
                can_be = f"it can be {', '.join(values)}"
            raise RpcError(INVALID_PARAMS, f"{option!r} cannot be {value!r}: {can_be}")
        if option == "model":
            return replace(choices, model=value)
        if option == "effort":
            effort = None if value == _DEFAULT else value
            return replace(choices, reasoning_effort=effort)
        return self._with_mode(choices, value)

    def _with_mode(self, choices: Choices, mode: str) -> Choices:
        if mode == _PLAN.id:
            return replace(choices, mode="plan")
        own = self.configured
        choices = replace(
            choices,
            mode="default",
            approval_policy=own.approval_policy,
            sandbox_policy=own.sandbox_policy,
        )
        for known in PERMISSIONS:
            if known.id == mode:
                return known.given_to(choices, self.config, self.add_dirs)
        return choices

    def _options(self, choices: Choices) -> Mapping[str, _Option]:
        """All options by their ids. A current value is always among the values."""
        models = dict.fromkeys([*self.models, choices.model])
        effort = choices.reasoning_effort or _DEFAULT
        efforts = dict.fromkeys([_DEFAULT, *EFFORTS, effort])
        return {
            "mode": self._mode(choices),
            "model": _Option("Model", "model", choices.model, _named_alike(models)),
            "effort": _Option("Effort", "thought_level", effort, _named_alike(efforts)),
        }

    def _mode(self, choices: Choices) -> _Option:
        current = _CONFIGURED.id
        if choices.mode == "plan":
            current = _PLAN.id
        else:
            for each in PERMISSIONS:
                if each.are_those_of(choices):
                    current = each.id
                    break
        allowed = allowed_permissions(choices, self.config, self.add_dirs)
        values = [_Value(each.id, each.label, each.note) for each in allowed]
        values += [_CONFIGURED, _PLAN]
        return _Option("Permissions", "mode", current, values)


def _named_alike(ids: Iterable[str]) -> list[_Value]:
    """Values whose names are their ids."""
    return [_Value(each, each) for each in ids]


def models_of_provider(config: Config, environment: Mapping[str, str]) -> Sequence[str]:
    """The models that the configured provider can serve. A session keeps its provider."""
    found: dict[str, None] = {}
    for name in selectable_models(config, environment):
        try:
            found[model_of_provider(config, name)] = None
        except ConfigError:
            continue
    return list(found)
