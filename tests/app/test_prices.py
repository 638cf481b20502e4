from pathlib import Path

import pytest

from codex_py.app.prices import price_of
from codex_py.config.config import Config, load_config
from codex_py.errors import ConfigError
from codex_py.model.known_models import Price
from codex_py.protocol.stream import Usage


def _config(tmp_path: Path, *overrides: str) -> Config:
    environment = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path)}
    return load_config(cwd=tmp_path, environment=environment, overrides=overrides)


def test_configured_prices_go_over_those_of_the_table(tmp_path: Path) -> None:
    def price(model: str, *overrides: str) -> Price | None:
        return price_of(_config(tmp_path, *overrides), model, "openai")

    assert price("gpt-5.5") == Price(5, 0.5, 30)
    assert price("gpt-5.5", 'model_prices."gpt-5.5".output=1') == Price(5, 0.5, 1)
    assert price("mine", "model_prices.mine={input=2, output=3}") == Price(2, 2, 3)
    assert price("mine", "model_prices.mine={input=2}") is None
    assert price("mine") is None


def test_a_listed_price_counts_at_its_provider_alone(tmp_path: Path) -> None:
    assert price_of(_config(tmp_path), "gpt-oss:20b", "ollama") is None
    own = 'model_prices."gpt-oss:20b"={input=1, output=2}'
    assert price_of(_config(tmp_path, own), "gpt-oss:20b", "ollama") == Price(1, 1, 2)


def test_a_price_may_be_that_of_a_known_model(tmp_path: Path) -> None:
    same = 'model_prices."gateway/gpt-5.5".same_as="openai/gpt-5.5"'
    config = _config(tmp_path, same)
    assert price_of(config, "gpt-5.5", "gateway") == Price(5, 0.5, 30)
    assert price_of(config, "gpt-5.5", "other") is None
    dearer = _config(tmp_path, same, 'model_prices."gateway/gpt-5.5".output=40')
    assert price_of(dearer, "gpt-5.5", "gateway") == Price(5, 0.5, 40)
    assert price_of(dearer, "gpt-5.5", "openai") == Price(5, 0.5, 30)


def test_a_model_with_a_publisher_in_its_name_has_a_price(tmp_path: Path) -> None:
    assert price_of(_config(tmp_path), "openai/gpt-5.5", "github") is None
    same = 'model_prices."github/openai/gpt-5.5".same_as="openai/gpt-5.5"'
    assert price_of(_config(tmp_path, same), "openai/gpt-5.5", "github") == Price(
        5, 0.5, 30
    )


@pytest.mark.parametrize(
    "target", ["openai/gpt-nope", "gpt-5.5", "b/m", "a/m", "xai/gpt-5.5"]
)
def test_a_price_is_that_of_no_unknown_model_and_of_no_other_entry(
    tmp_path: Path, target: str
) -> None:
    path = tmp_path / "config.toml"
    text = f'[model_prices."a/m"]\nsame_as = "{target}"\n[model_prices."b/m"]\nsame_as = "a/m"\n'
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        price_of(_config(tmp_path), "m", "a")
    assert str(caught.value) == (
        f'{path}:2: `model_prices."a/m".same_as`: {target!r} is no PROVIDER/MODEL of `codex-py models list`'
    )


def test_cached_input_has_a_price_of_its_own() -> None:
    usage = Usage(
        input_tokens=3_000_000, cached_input_tokens=1_000_000, output_tokens=1_000_000
    )
    assert Price(5, 0.5, 30).of(usage) == 2 * 5 + 0.5 + 30
