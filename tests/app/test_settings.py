"""Settings that change while a session is open.

Also tests `protocol/settings.py`.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

from codex_py.app.options import SessionOptions
from codex_py.app.session import open_session
from codex_py.app.settings import model_of_provider
from codex_py.config.config import load_config
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, ItemCompleted


def test_a_misspelt_provider_is_told_when_the_model_is_changed_too(
    tmp_path: Path,
) -> None:
    warnings: list[str] = []

    def sink(event: Event) -> None:
        match event:
            case ItemCompleted(ErrorItem(message=text)):
                warnings.append(text)
            case _:
                pass

    async def change() -> None:
        environment = {"CODEX_HOME": str(tmp_path), "OPENAI_API_KEY": "k"}
        config = load_config(cwd=tmp_path, environment=environment)
        opening = open_session(config, SessionOptions(), sink, environment=environment)
        async with opening as session:
            session.change(replace(session.settings.choices, model="gatway/m"))

    asyncio.run(change())
    assert [text for text in warnings if "because it names no provider" in text]


def test_a_model_with_a_publisher_in_its_name_is_one_of_the_provider(
    tmp_path: Path,
) -> None:
    environment = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path)}
    config = load_config(
        cwd=tmp_path, environment=environment, overrides=["model=github/openai/gpt-5"]
    )
    assert model_of_provider(config, "openai/gpt-5-mini") == "openai/gpt-5-mini"
    assert model_of_provider(config, "github/openai/gpt-5-mini") == "openai/gpt-5-mini"
