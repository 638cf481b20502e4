"""What is known of each model: its window, its tools, what it can be asked for. LIGHT.

`known_models` has those of other makers. Source for OpenAI's: the catalogue that Codex 0.169 carries (`codex debug
models --bundled`), and for the older models that of 0.80 and 0.98. Models of "code mode" there get plain function tools
here.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.errors import ConfigError
from codex_py.filesystem.reading import read_whole
from codex_py.model.known_models import known_model
from codex_py.protocol.frozen import frozen

_MAX_BYTES = 16 * 1024 * 1024

ShellTool: TypeAlias = Literal["unified_exec", "shell_command", "shell", "local_shell", "disabled"]


@frozen(kw_only=True)
class ModelInfo:
    slug: str
    """As asked for, not as listed."""
    context_window: int = 272_000
    """Tokens."""
    effective_context_window_percent: int = 95
    """How much of the window may be filled with input."""
    default_reasoning_effort: str | None = "medium"
    ultra_effort: str = "medium"
    """What Codex sends for the level `ultra`, which services do not know."""
    default_verbosity: str | None = None
    """None where the model cannot be asked for one."""
    image_detail: Literal["original", "high"] = "high"
    """At which images are sent; services of other makers refuse `original`."""
    shell_tool: ShellTool = "unified_exec"
    freeform_apply_patch: bool = True
    """As a custom tool; a function elsewhere."""
    parallel_tool_calls: bool = True
    max_output_tokens: int | None = None
    """The most tokens of a response; None where it is not known."""
    images: bool = True
    thinking: Literal["budget"] | None = None
    """How the Messages API is asked for an effort, where the profile of the provider does not fit the model."""
    truncation_limit_tokens: int = 10_000
    """How much of one tool result the model is given."""
    display_name: str = ""
    about: str = ""
    """What it is for, in a few words; empty where it is not known."""
    efforts: tuple[str, ...] | None = None
    """That it can be asked for; None where they are not known."""
    known: bool = True
    """Listed in the catalogue; for others the values are guesses that fit most."""


def _modern(slug: str, effort: str, **values: Any) -> ModelInfo:
    usual = {"ultra_effort": "max", "default_verbosity": "low", "image_detail": "original"}
    values = {**usual, "efforts": (*_EFFORTS, "ultra"), **values}
    return ModelInfo(slug=slug, default_reasoning_effort=effort, **values)


def _classic(slug: str, shell_tool: ShellTool, **values: Any) -> ModelInfo:
    values = {"ultra_effort": "high", "parallel_tool_calls": False, **values}
    values = {"efforts": _EFFORTS[:3], **values}
    return ModelInfo(slug=slug, shell_tool=shell_tool, **values)


_EFFORTS = ("low", "medium", "high", "xhigh", "max")
EFFORTS = ("none", "minimal", *_EFFORTS, "ultra")
"""Those that one or another model of the catalogue knows."""

_LISTED = (
    _modern("gpt-6", "medium"),
    _modern("gpt-6-astra", "low", ultra_effort="xhigh"),
    _modern("gpt-6.1", "low", ultra_effort="xhigh"),
    _modern("gpt-6.1-terra", "low", ultra_effort="xhigh", context_window=500_000),
    _modern("gpt-5.6", "medium"),
    _modern("gpt-5.6-sol", "low"),
    _modern("gpt-5.5", "medium", ultra_effort="xhigh", efforts=_EFFORTS[:4]),
    _modern("gpt-daybreak-blue-latest", "medium", about="defensive security work"),
    _modern(
        "gpt-daybreak-red-latest",
        "medium",
        context_window=372_000,
        default_verbosity="high",
        about="authorised security research",
    ),
    _modern("codex-auto-review", "low"),
    _modern("gpt-5.4", "medium", ultra_effort="xhigh", efforts=_EFFORTS[:4]),
    ModelInfo(slug="gpt-5.3", ultra_effort="xhigh", efforts=_EFFORTS[:4]),
    ModelInfo(slug="gpt-5.2-codex", ultra_effort="xhigh", efforts=_EFFORTS[:4]),
    _classic("gpt-5.2", "shell", default_verbosity="low"),
    _classic("gpt-5.1-codex", "shell_command"),
    _classic("gpt-5.1", "shell", default_verbosity="low"),
    _classic("gpt-5-codex", "shell_command"),
    _classic("gpt-5", "shell", default_verbosity="medium", freeform_apply_patch=False),
    _classic("o3", "shell", context_window=200_000, freeform_apply_patch=False),
    _classic(
        "gpt-4.1",
        "shell",
        context_window=1_047_576,
        default_reasoning_effort=None,
        efforts=(),
        freeform_apply_patch=False,
    ),
    _classic(
        "codex-mini-latest", "local_shell", context_window=200_000, freeform_apply_patch=False
    ),
)

_SHELL_TYPES = {"shell": "default", "local_shell": "local"}
"""The names that Codex 0.169 has for some shell tools."""


def model_info(slug: str, catalog_json: Path | None = None) -> ModelInfo:
    """The entry with the longest slug that this one begins with, one `namespace/` aside.

    Args:
        catalog_json: a file `{"models": […]}`, in the form of Codex, in place of OpenAI's models.

    Raises:
        ConfigError: the file cannot be read, or is no such catalogue.
    """
    listed = catalog_models(catalog_json)
    names = [slug] if "/" not in slug else [slug, slug.partition("/")[2]]
    for name in names:
        fitting = [entry for entry in listed if name.startswith(entry.slug)]
        if fitting:
            return replace(max(fitting, key=lambda entry: len(entry.slug)), slug=slug)
    other = known_model(slug)
    if other is None or other.window is None:
        return ModelInfo(
            slug=slug, default_reasoning_effort=None, freeform_apply_patch=False, known=False
        )
    return ModelInfo(
        slug=slug,
        context_window=other.window,
        default_reasoning_effort=other.effort,
        freeform_apply_patch=False,
        max_output_tokens=other.output,
        about=other.about,
        images=other.images,
        thinking=other.thinking,
    )


def in_form_of_codex(entry: ModelInfo) -> dict[str, Any]:
    """An entry as Codex has it in its catalogue, as far as its fields are known."""
    efforts = entry.efforts or ()
    return {
        "slug": entry.slug,
        "display_name": entry.display_name or entry.slug,
        "description": entry.about,
        "default_reasoning_level": entry.default_reasoning_effort,
        "supported_reasoning_levels": [{"effort": name, "description": name} for name in efforts],
        "multi_agent_reasoning_effort": entry.ultra_effort,
        "shell_type": _SHELL_TYPES.get(entry.shell_tool, entry.shell_tool),
        "visibility": "list",
        "supported_in_api": True,
        "priority": 0,
        "support_verbosity": entry.default_verbosity is not None,
        "default_verbosity": entry.default_verbosity,
        "apply_patch_tool_type": "freeform" if entry.freeform_apply_patch else None,
        "truncation_policy": {"mode": "tokens", "limit": entry.truncation_limit_tokens},
        "supports_parallel_tool_calls": entry.parallel_tool_calls,
        "supports_image_detail_original": entry.image_detail == "original",
        "context_window": entry.context_window,
        "effective_context_window_percent": entry.effective_context_window_percent,
        "input_modalities": ["text", "image"] if entry.images else ["text"],
        "experimental_supported_tools": [],
    }


def catalog_models(path: Path | None = None) -> Sequence[ModelInfo]:
    """OpenAI's models, or those of the file, in their order; arguments and errors as for `model_info`."""
    if path is None:
        return _LISTED
    try:
        data: Any = json.loads(read_whole(path, _MAX_BYTES))
    except OSError as error:
        raise _mistake(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _mistake(f"{path}: not valid JSON: {error}") from error
    try:
        return [_entry(entry) for entry in data["models"]]
    except KeyError as error:
        raise _mistake(f"{path}: {error} is missing") from error
    except (TypeError, AttributeError, ValueError) as error:
        raise _mistake(f"{path}: {error}") from error


def _mistake(text: str) -> ConfigError:
    return ConfigError(f"model_catalog_json: {text}", key=("model_catalog_json",))


def _entry(entry: dict[str, Any]) -> ModelInfo:
    slug, window = entry["slug"], entry.get("context_window") or 272_000
    percent = entry.get("effective_context_window_percent") or 95
    truncation: dict[str, Any] = entry.get("truncation_policy") or {}
    limit = truncation.get("limit", 10_000)
    if not isinstance(slug, str) or not slug:
        raise TypeError("a slug must be a text")
    if not all(isinstance(number, int) and number > 0 for number in (window, percent, limit)):
        raise TypeError(f"{slug}: windows and limits must be whole numbers above 0")
    verbosity = entry.get("default_verbosity") or "low"
    levels: list[dict[str, Any]] = entry.get("supported_reasoning_levels") or []
    efforts = tuple(level["effort"] for level in levels)
    name = str(entry.get("display_name") or "")
    return ModelInfo(
        slug=slug,
        context_window=window,
        display_name=name if name != slug else "",
        about=str(entry.get("description") or ""),
        efforts=efforts,
        effective_context_window_percent=percent,
        default_reasoning_effort=entry.get("default_reasoning_level"),
        ultra_effort=entry.get("multi_agent_reasoning_effort")
        or next((name for name in reversed(_EFFORTS[2:]) if name in efforts), "medium"),
        image_detail="original" if entry.get("supports_image_detail_original") else "high",
        default_verbosity=verbosity if entry.get("support_verbosity") else None,
        # Every other value gives `exec_command`, as in Codex.
        shell_tool="disabled" if entry.get("shell_type") == "disabled" else "unified_exec",
        freeform_apply_patch=entry.get("apply_patch_tool_type") == "freeform",
        parallel_tool_calls=entry.get("supports_parallel_tool_calls", True),
        images="image" in entry.get("input_modalities", ["image"]),
        truncation_limit_tokens=max(1, limit // 4) if truncation.get("mode") == "bytes" else limit,
    )
