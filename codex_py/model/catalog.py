"""The facts about each model: its window, its tools, its options. LIGHT.

`known_models` has the models of other makers. OpenAI's are in `openai_models.json`, in the format
of Codex, with the fields that are read here. Source: the catalogue in Codex 0.171 (`codex debug
models --bundled`), and for older models the ones in 0.80 and 0.98. Models with "code mode" there
get plain function tools here; models with another shell name it in `shell_tool`, a field of our
own.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from codex_py.errors import ConfigError
from codex_py.filesystem.reading import read_whole
from codex_py.model.known_models import known_model
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject, as_object

_MAX_BYTES = 16 * 1024 * 1024

ShellTool: TypeAlias = Literal[
    "unified_exec", "shell_command", "shell", "local_shell", "disabled"
]


@frozen(kw_only=True)
class ModelInfo:
    """The facts about a model."""

    slug: str
    """The name that was asked for, not the one in the catalogue."""
    context_window: int = 272_000
    """The size of the window in tokens."""
    effective_context_window_percent: int = 95
    """The part of the window that input may fill."""
    default_reasoning_effort: str | None = "medium"
    """The effort if the user chooses none; None: no effort is sent."""
    ultra_effort: str = "medium"
    """The effort that Codex sends for the level `ultra`, which services do not know."""
    default_verbosity: str | None = None
    """The default verbosity; None if the model has no such option."""
    image_detail: Literal["original", "high"] = "high"
    """The detail with which images are sent; services of other makers refuse `original`."""
    shell_tool: ShellTool = "unified_exec"
    freeform_apply_patch: bool = True
    """True: `apply_patch` is a custom tool; False: it is a function."""
    parallel_tool_calls: bool = True
    max_output_tokens: int | None = None
    """The most tokens of a response; None if unknown."""
    images: bool = True
    thinking: Literal["budget"] | None = None
    """The way to ask for an effort in the Messages API, if the provider's profile does not fit the
    model."""
    truncation_limit_tokens: int = 10_000
    """The most tokens of one tool result that the model gets."""
    display_name: str = ""
    about: str = ""
    """The purpose of the model in a few words; empty if unknown."""
    efforts: tuple[str, ...] | None = None
    """The efforts that the model supports; None if unknown."""
    known: bool = True
    """True if the model is listed; otherwise the values are guesses that fit most models."""


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
"""All efforts that some model of the catalogue supports."""

_SHELL_TYPES = {"shell": "default", "local_shell": "local"}
"""Codex 0.169's names for some shell tools."""


def model_info(slug: str, catalog_json: Path | None = None) -> ModelInfo:
    """The facts about a model: the entry with the longest slug that `slug` begins with.

    If none fits, `slug` is tried without its `namespace/`.

    Args:
        catalog_json: a file `{"models": […]}`, in the format of Codex, with models to use in place
            of OpenAI's.

    Raises:
        ConfigError: the file cannot be read, or is not such a catalogue.
    """
    listed = catalog_models(catalog_json)
    names = [slug]
    if "/" in slug:
        _, _, without_namespace = slug.partition("/")
        names.append(without_namespace)
    for name in names:
        fitting = [entry for entry in listed if name.startswith(entry.slug)]
        if fitting:
            longest = max(fitting, key=lambda entry: len(entry.slug))
            return replace(longest, slug=slug)
    other = known_model(slug)
    if other is None or other.window is None:
        return ModelInfo(
            slug=slug,
            default_reasoning_effort=None,
            freeform_apply_patch=False,
            known=False,
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
    """An entry in the format of Codex's catalogue, as far as its fields are known."""
    efforts = entry.efforts or ()
    return {
        "slug": entry.slug,
        "display_name": entry.display_name or entry.slug,
        "description": entry.about,
        "default_reasoning_level": entry.default_reasoning_effort,
        "supported_reasoning_levels": [
            {"effort": name, "description": name} for name in efforts
        ],
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
    """OpenAI's models, or the file's, in order; arguments and errors as for `model_info`."""
    if path is None:
        return _bundled()
    return _read(path)


def listed_by_server(answer: JsonObject) -> Sequence[ModelInfo]:
    """Return the models that a server lists in the format of Codex, and that users can choose.

    Damaged entries are left out.
    """
    listed: Any = answer.get("models")
    if not isinstance(listed, list):
        return []
    found: list[ModelInfo] = []
    for entry in map(as_object, cast("list[Any]", listed)):
        is_hidden = entry.get("visibility", "list") != "list"
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            info = _entry({**entry})
            efforts: Any = info.efforts
            if not is_hidden and all(isinstance(each, str) for each in efforts):
                found.append(info)
    return found


@cache
def _bundled() -> Sequence[ModelInfo]:
    return _read(Path(__file__).with_name("openai_models.json"))


def _read(path: Path) -> Sequence[ModelInfo]:
    """The models of a file. Raises a `ConfigError` if it is not a catalogue."""
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
    """An entry of a catalogue. Raises a `TypeError` or a `KeyError` for a damaged one."""
    slug = entry["slug"]
    window = entry.get("context_window") or 272_000
    percent = entry.get("effective_context_window_percent") or 95
    truncation: dict[str, Any] = entry.get("truncation_policy") or {}
    limit = truncation.get("limit", 10_000)
    if not isinstance(slug, str) or not slug:
        raise TypeError("a slug must be a text")
    for number in (window, percent, limit):
        if not isinstance(number, int) or number <= 0:
            raise TypeError(f"{slug}: windows and limits must be whole numbers above 0")
    if truncation.get("mode") == "bytes":
        limit = max(1, limit // 4)
    verbosity = None
    if entry.get("support_verbosity"):
        verbosity = entry.get("default_verbosity") or "low"
    levels: list[dict[str, Any]] = entry.get("supported_reasoning_levels") or []
    efforts = tuple(level["effort"] for level in levels)
    ultra_effort = entry.get("multi_agent_reasoning_effort") or _highest(efforts)
    name = str(entry.get("display_name") or "")
    if name == slug:
        name = ""
    image_detail = "high"
    if entry.get("supports_image_detail_original"):
        image_detail = "original"
    return ModelInfo(
        slug=slug,
        context_window=window,
        display_name=name,
        about=str(entry.get("description") or ""),
        efforts=efforts,
        effective_context_window_percent=percent,
        default_reasoning_effort=entry.get("default_reasoning_level"),
        ultra_effort=ultra_effort,
        image_detail=image_detail,
        default_verbosity=verbosity,
        shell_tool=_shell_tool(entry),
        freeform_apply_patch=entry.get("apply_patch_tool_type") == "freeform",
        parallel_tool_calls=entry.get("supports_parallel_tool_calls", True),
        images="image" in entry.get("input_modalities", ["image"]),
        truncation_limit_tokens=limit,
    )


def _highest(efforts: Sequence[str]) -> str:
    """The highest of these efforts; `medium` if none is above it."""
    for name in ("max", "xhigh", "high"):
        if name in efforts:
            return name
    return "medium"


def _shell_tool(entry: dict[str, Any]) -> ShellTool:
    tool: Any = entry.get("shell_tool")
    if tool in get_args(ShellTool):
        return tool
    if entry.get("shell_type") == "disabled":
        return "disabled"
    # Every other value gives `exec_command`, as in Codex.
    return "unified_exec"
