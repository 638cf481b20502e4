"""Advice to users who have a key of another provider than OpenAI.

Tests `app/providers/set_keys.py` and `model/known_models.py`.
"""

import pytest

from codex_py.model.known_models import known_models
from tests.support.program import Workplace, run_codex_py


@pytest.mark.parametrize(
    ("env", "advice"),
    [
        (
            {"ANTHROPIC_API_KEY": "x"},
            "ANTHROPIC_API_KEY is set; to use it: -m anthropic/claude-opus-5-5.",
        ),
        ({"XAI_API_KEY": "x"}, "XAI_API_KEY is set; to use it: -m xai/grok-4.7."),
        # No model is suggested where the provider serves those of others.
        (
            {"OPENROUTER_API_KEY": "x"},
            "OPENROUTER_API_KEY is set; to use it: -m openrouter/MODEL.",
        ),
        (
            {"GEMINI_API_KEY": "x", "DEEPSEEK_API_KEY": "y"},
            "DEEPSEEK_API_KEY is set; to use it: -m deepseek/deepseek-v4-pro."
            " GEMINI_API_KEY is set; to use it: -m gemini/gemini-3.8-flash.",
        ),
    ],
)
@pytest.mark.parametrize(
    "command", [("exec", "--skip-git-repo-check", "hi"), ("doctor",)]
)
def test_a_user_without_a_key_of_openai_is_told_which_key_is_set(
    place: Workplace, env: dict[str, str], advice: str, command: tuple[str, ...]
) -> None:
    done = run_codex_py(command, place.home, place.cwd, env)
    told = " ".join((done.stdout + done.stderr).decode().split())
    assert done.returncode == (77 if command[0] == "exec" else 1)
    assert "No API key or ChatGPT login for OpenAI" in told
    assert advice in told


@pytest.mark.parametrize("env", [{}, {"ANTHROPIC_API_KEY": " "}, {"GITHUB_TOKEN": "x"}])
def test_nothing_is_advised_where_no_other_key_is_set(
    place: Workplace, env: dict[str, str]
) -> None:
    done = run_codex_py(
        ("exec", "--skip-git-repo-check", "hi"), place.home, place.cwd, env
    )
    assert done.returncode == 77
    assert b"to use it" not in done.stderr


def test_a_key_that_is_set_but_empty_is_told_apart_from_one_that_is_not(
    place: Workplace,
) -> None:
    table = (
        '[model_providers.m]\nbase_url = "http://127.0.0.1:1/v1"\nenv_key = "MKEY"\n'
    )
    (place.home / "config.toml").write_text(
        f'model_provider = "m"\n{table}', encoding="utf-8"
    )
    command = ("exec", "--skip-git-repo-check", "hi")
    done = {
        name: run_codex_py(command, place.home, place.cwd, env).stderr.decode()
        for name, env in {
            "unset": {},
            "empty": {"MKEY": ""},
            "blank": {"MKEY": " \n"},
        }.items()
    }
    assert "Missing environment variable: `MKEY`. It holds" in done["unset"]
    assert (
        "Missing environment variable: `MKEY`. It is set, but empty." in done["empty"]
    )
    assert "It is set, but empty." in done["blank"]


def test_a_single_model_of_a_provider_is_suggested() -> None:
    suggested = [model.provider for model in known_models() if model.suggested]
    assert len(suggested) == len(set(suggested))
