"""The choices of a client for a session: permissions and Plan mode, the model, and its effort."""

from collections.abc import Mapping, Sequence
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

_Rows: TypeAlias = Sequence[tuple[str, str, str]]
"""The values of an option, each with its name and its meaning."""
_PLAN: Final = ("plan", "Plan", "looks and asks, and changes nothing")
_CONFIGURED: Final = (
    "configured",
    "As configured",
    "the permissions of the configuration",
)
_DEFAULT: Final = "default"


@frozen
class EditorOptions:
    """The options of a session. `configured`: the choices that the session begins with."""

    config: Config
    configured: Choices
    models: Sequence[str]
    add_dirs: tuple[Path, ...]

    def shown(self, choices: Choices) -> list[dict[str, Any]]:
        """All options, with their current values."""
        return [
            {
                "type": "select",
                "id": option,
                "name": name,
                "category": category,
                "currentValue": value,
                "options": [
                    {"value": v, "name": n, "description": note} for v, n, note in rows
                ],
            }
            for option, (name, category, value, rows) in self._options(choices).items()
        ]

    def modes(self, choices: Choices) -> dict[str, Any]:
        """The option `mode`, in the format for older clients."""
        _, _, value, rows = self._options(choices)["mode"]
        modes: list[dict[str, str]] = []
        for mode, name, note in rows:
            modes.append({"id": mode, "name": name, "description": note})
        return {"currentModeId": value, "availableModes": modes}

    def chosen(
        self,
        choices: Choices,
        option: str,
        value: str,
    ) -> Choices:
        """Put a value into the choices. Raises an `RpcError` if the option or value is unknown."""
        known_options = self._options(choices)
        values: list[str] = []
        if option in known_options:
            _, _, _, rows = known_options[option]
            values = [row[0] for row in rows]
        if value not in values:
            if values:
                can_be = f"it can be {', '.join(values)}"
            else:
                can_be = "no such option"
            raise RpcError(INVALID_PARAMS, f"{option!r} cannot be {value!r}: {can_be}")
        if option == "model":
            return replace(choices, model=value)
        if option == "effort":
            return replace(
                choices, reasoning_effort=None if value == _DEFAULT else value
            )
        if value == "plan":
            return replace(choices, mode="plan")
        own = self.configured
        choices = replace(
            choices,
            mode="default",
            approval_policy=own.approval_policy,
            sandbox_policy=own.sandbox_policy,
        )
        for known in PERMISSIONS:
            if known.id == value:
                return known.given_to(choices, self.config, self.add_dirs)
        return choices

    def _options(self, choices: Choices) -> Mapping[str, tuple[str, str, str, _Rows]]:
        known = {each.id for each in PERMISSIONS if each.are_those_of(choices)}
        if choices.mode == "plan":
            mode = "plan"
        else:
            mode = next(iter(known), _CONFIGURED[0])
        allowed = allowed_permissions(choices, self.config, self.add_dirs)
        modes = [(each.id, each.label, each.note) for each in allowed]
        models = dict.fromkeys([*self.models, choices.model])
        effort = choices.reasoning_effort or _DEFAULT
        efforts = dict.fromkeys([_DEFAULT, *EFFORTS, effort])
        return {
            "mode": ("Permissions", "mode", mode, [*modes, _CONFIGURED, _PLAN]),
            "model": (
                "Model",
                "model",
                choices.model,
                [(name, name, "") for name in models],
            ),
            "effort": (
                "Effort",
                "thought_level",
                effort,
                [(name, name, "") for name in efforts],
            ),
        }


def models_of_provider(config: Config, environment: Mapping[str, str]) -> Sequence[str]:
    """The models that can be chosen: all of the provider with which the conversation is held."""
    found: dict[str, None] = {}
    for name in selectable_models(config, environment):
        try:
            found[model_of_provider(config, name)] = None
        except ConfigError:
            continue
    return list(found)
