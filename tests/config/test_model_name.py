import pytest

from codex_py.errors import ConfigError
from tests.config.conftest import Place

MINE = '[model_providers.mine]\nname = "Mine"\nbase_url = "http://127.0.0.1:1/v1"\n'


@pytest.mark.parametrize(
    ("model", "provider", "rest"),
    [
        ("anthropic/claude-opus-5", "anthropic", "claude-opus-5"),
        ("openrouter/anthropic/claude-opus-5", "openrouter", "anthropic/claude-opus-5"),
        ("github/openai/gpt-5", "github", "openai/gpt-5"),
        ("mine/m", "mine", "m"),
        ("someone/m", "openai", "someone/m"),
        ("anthropic/", "openai", "anthropic/"),
        ("anthropic", "openai", "anthropic"),
    ],
)
def test_a_model_may_be_named_with_its_provider(
    place: Place, model: str, provider: str, rest: str
) -> None:
    place.user(f'model = "{model}"\n{MINE}')
    config = place.load()
    assert (config.model_provider, config.model) == (provider, rest)


def test_a_fallback_may_have_a_publisher_in_its_name(place: Place) -> None:
    place.user('model_fallbacks = ["github/openai/gpt-5"]\n')
    assert place.load().model_fallbacks == (("github", "openai/gpt-5"),)


def test_a_provider_that_is_set_beside_the_model_leaves_its_name_as_it_is(
    place: Place,
) -> None:
    place.user('model = "anthropic/claude-opus-5"\nmodel_provider = "openrouter"\n')
    config = place.load()
    assert (config.model_provider, config.model) == (
        "openrouter",
        "anthropic/claude-opus-5",
    )


def test_an_option_is_stronger_than_the_provider_of_a_file(place: Place) -> None:
    place.user('model_provider = "openrouter"\n')
    flags = {"model": "anthropic/claude-opus-5"}
    assert place.load(flags=flags).model_provider == "anthropic"
    for overrides in (["model_provider=lmstudio"], ["model_provider=mine", "model=a"]):
        config = place.load(flags=flags, overrides=overrides)
        assert config.model == "anthropic/claude-opus-5"
        assert config.model_provider == overrides[0].partition("=")[2]
    by_override = place.load(overrides=["model=xai/grok-4.7"])
    assert (by_override.model_provider, by_override.model) == ("xai", "grok-4.7")
    both = place.load(
        flags={"model_provider": "lmstudio"}, overrides=["model=openai/gpt-oss-20b"]
    )
    assert (both.model_provider, both.model) == ("lmstudio", "openai/gpt-oss-20b")


def test_a_project_chooses_no_provider_by_the_name_of_a_model(place: Place) -> None:
    place.user('model = "gpt-5.5"\n')
    place.project('model = "anthropic/claude-opus-5"\n')
    place.trust()
    config = place.load()
    assert (config.model_provider, config.model) == (
        "openai",
        "anthropic/claude-opus-5",
    )


def test_a_project_names_a_model_of_the_provider_that_the_user_chose(
    place: Place,
) -> None:
    place.user('model = "ollama/qwen3"\n')
    place.project('model = "gpt-5.5"\nmodel_provider = "xai"\n')
    place.trust()
    config = place.load()
    assert (config.model_provider, config.model) == ("ollama", "gpt-5.5")
    option = place.load(flags={"model": "xai/grok-4.7"})
    assert (option.model_provider, option.model) == ("xai", "grok-4.7")


def test_the_file_of_this_program_alone_is_stronger_than_that_of_codex(
    place: Place,
) -> None:
    place.user('model = "gpt-5.5"\nmodel_provider = "openrouter"\n')
    (place.home / "codex-py").mkdir()
    place.user('model = "anthropic/claude-opus-5"\n', "codex-py/config.toml")
    config = place.load()
    assert (config.model_provider, config.model) == ("anthropic", "claude-opus-5")
    assert "  from own config" in place.explain("model")
    assert place.load(ignore_user_config=True).model_provider == "openai"


def test_prices_are_numbers(place: Place) -> None:
    place.user('[model_prices."a/b"]\ninput = 1\noutput = 2.5\n')
    price = place.load().settings.model_prices["a/b"]
    assert (price.input, price.output, price.same_as) == (1, 2.5, None)
    with pytest.raises(
        ConfigError,
        match=r"model_prices\.m\.input` must be a finite number of 0 or more",
    ):
        place.load(overrides=["model_prices.m.input=-1"])
