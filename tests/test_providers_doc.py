"""The examples of docs/providers.md are configurations, and its tables are complete."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from codex_py.app.model import configured_provider
from codex_py.config.config import load_config
from codex_py.model.profile import Profile
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS

TEXT = (Path(__file__).parent.parent / "docs" / "providers.md").read_text(
    encoding="utf-8"
)
EXAMPLES = [
    text
    for text in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    if "[model_providers" in text
]


@pytest.mark.parametrize(
    ("number", "wire_api", "model"),
    [
        (0, "chat", "my-model"),
        (1, "anthropic", "claude-opus-5-5"),
        (2, "text", "llama"),
    ],
)
def test_each_example_is_a_provider(
    tmp_path: Path, number: int, wire_api: str, model: str
) -> None:
    assert len(EXAMPLES) == 3
    own = tmp_path / "codex-py" / "config.toml"
    own.parent.mkdir()
    own.write_text(EXAMPLES[number], encoding="utf-8")
    environment = {"CODEX_HOME": str(tmp_path), "HOME": str(tmp_path)}
    config = load_config(cwd=tmp_path, environment=environment, strict=True)
    assert (configured_provider(config, environment).wire_api, config.model) == (
        wire_api,
        model,
    )


def test_every_provider_and_every_field_of_a_profile_is_described() -> None:
    names = [*BUILT_IN_PROVIDERS, *(each.name for each in fields(Profile))]
    assert [name for name in names if f"`{name}`" not in TEXT] == []
