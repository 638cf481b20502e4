"""Also tests `model/known_models.py`."""

import json
from pathlib import Path

import pytest

from codex_py.errors import ConfigError
from codex_py.model.catalog import ModelInfo, model_info
from codex_py.model.known_models import known_models, table_date
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS


def test_the_default_model_is_known() -> None:
    assert model_info("gpt-6.1-sol") == ModelInfo(
        slug="gpt-6.1-sol",
        context_window=500_000,
        efforts=("low", "medium", "high", "xhigh", "max", "ultra"),
        default_reasoning_effort="low",
        ultra_effort="xhigh",
        default_verbosity="low",
        image_detail="original",
    )


@pytest.mark.parametrize(
    ("slug", "shell_tool", "freeform"),
    [
        ("gpt-6-luna", "unified_exec", True),
        ("gpt-5.6-terra", "unified_exec", True),
        ("gpt-5.5-2026-01-01", "unified_exec", True),
        ("gpt-5.4-mini", "unified_exec", True),
        ("gpt-5.3-codex", "unified_exec", True),
        ("gpt-5.2-codex", "unified_exec", True),
        ("gpt-5.2", "shell", True),
        ("gpt-5.1-codex-max", "shell_command", True),
        ("gpt-5.1", "shell", True),
        ("gpt-5-codex", "shell_command", True),
        ("gpt-5-mini", "shell", False),
        ("o3", "shell", False),
        ("gpt-4.1", "shell", False),
        ("codex-mini-latest", "local_shell", False),
    ],
)
def test_the_longest_slug_gives_the_tools(
    slug: str, shell_tool: str, freeform: bool
) -> None:
    for spelled in (slug, f"openai/{slug}"):
        info = model_info(spelled)
        assert (info.slug, info.shell_tool, info.freeform_apply_patch, info.known) == (
            spelled,
            shell_tool,
            freeform,
            True,
        )


def test_an_unknown_model_gets_what_fits_most() -> None:
    assert model_info("a/b/gpt-5.5") == ModelInfo(
        slug="a/b/gpt-5.5",
        default_reasoning_effort=None,
        freeform_apply_patch=False,
        known=False,
    )


def test_a_catalogue_file_replaces_what_is_built_in(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    entry = {
        "slug": "mine",
        "display_name": "Mine",
        "shell_type": "disabled",
        "support_verbosity": True,
        "default_verbosity": "high",
        "truncation_policy": {"mode": "bytes", "limit": 8_000},
        "context_window": 1_000,
        "default_reasoning_level": "low",
        "supported_reasoning_levels": [
            {"effort": "low"},
            {"effort": "xhigh"},
            {"effort": "ultra"},
        ],
        "supports_image_detail_original": True,
        "supports_parallel_tool_calls": False,
        "apply_patch_tool_type": None,
    }
    path.write_text(json.dumps({"models": [entry]}), encoding="utf-8")
    assert model_info("mine-2", path) == ModelInfo(
        slug="mine-2",
        display_name="Mine",
        efforts=("low", "xhigh", "ultra"),
        context_window=1_000,
        default_reasoning_effort="low",
        ultra_effort="xhigh",
        default_verbosity="high",
        image_detail="original",
        shell_tool="disabled",
        freeform_apply_patch=False,
        parallel_tool_calls=False,
        truncation_limit_tokens=2_000,
    )
    assert not model_info("gpt-5.5", path).known


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"models": [1]}',
        '{"models": [{}]}',
        '{"models": [{"slug": 1}]}',
        '{"models": [{"slug": "x", "context_window": "big"}]}',
    ],
)
def test_a_bad_catalogue_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"models\.json"):
        model_info("x", path)


def test_a_missing_catalogue_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: No such file"):
        model_info("x", tmp_path / "none.json")


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-4-5-20251101",
        "anthropic/claude-opus-4.5",
        "openrouter/anthropic/Claude-Opus-4.5",
    ],
)
def test_a_model_of_another_maker_is_found_as_services_spell_it(name: str) -> None:
    assert model_info(name) == ModelInfo(
        slug=name,
        context_window=200_000,
        default_reasoning_effort="medium",
        freeform_apply_patch=False,
        max_output_tokens=64_000,
        thinking="budget",
    )


def test_a_local_model_is_known_by_its_family() -> None:
    info = model_info("gpt-oss:20b")
    assert (info.context_window, info.images, info.known) == (131_072, False, True)


def test_a_file_takes_the_place_of_the_models_of_openai_alone(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    entry = {"slug": "mine", "input_modalities": ["text"]}
    path.write_text(json.dumps({"models": [entry]}), encoding="utf-8")
    assert not model_info("mine", path).images
    assert not model_info("gpt-6-sol", path).known
    assert model_info("claude-sonnet-5", path).known


def test_every_listed_model_has_what_the_catalogue_promises() -> None:
    for model in known_models():
        assert (model.window is None) == (model.provider == "openai"), model.slug
        assert model.provider in BUILT_IN_PROVIDERS
        prices = model.prices
        assert 0 <= prices.cached_input <= prices.input <= prices.output, model.slug
        info = model_info(model.slug)
        assert info.known, model.slug
        assert model.window in {None, info.context_window}, model.slug
    assert table_date().year >= 2026
