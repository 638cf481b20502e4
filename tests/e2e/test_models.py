"""What is asked of a model depends on what is known of it. Values as Codex 0.169 sends them.

Tests `app/model.py` and `app/providers/meant_models.py`.
"""

from typing import Any

import pytest

from codex_py.testing import ev_completed, ev_created, ev_function_call, ev_message
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)


@pytest.mark.parametrize(
    ("model", "effort"),
    [("gpt-5.6-sol", "max"), ("gpt-5.5", "xhigh"), ("mine", "medium")],
)
def test_ultra_is_sent_as_a_level_that_the_model_has(
    place: Workplace, model: str, effort: str
) -> None:
    with ScriptedServer(
        [[ev_created(), *ev_message("Done."), ev_completed()]]
    ) as server:
        place.run(server, "-m", model, "-c", "model_reasoning_effort=ultra", "go")
    assert server.requests[0].body["reasoning"]["effort"] == effort


@pytest.mark.parametrize(
    ("model", "detail"), [("gpt-5.5", "original"), ("mine", "high")]
)
def test_images_are_sent_at_a_detail_that_the_model_takes(
    place: Workplace, model: str, detail: str
) -> None:
    (place.cwd / "a.png").write_bytes(_PNG)
    script = [
        [
            ev_created(),
            *ev_function_call("c1", "view_image", {"path": "a.png"}),
            ev_completed(),
        ],
        [ev_created(), *ev_message("A dot."), ev_completed()],
    ]
    with ScriptedServer(script) as server:
        place.run(server, "-m", model, "-i", "a.png", "--", "look")
    last = server.requests[1]
    (prompt,) = [item for item in last.input if _has_image(item)]
    assert prompt["content"][1]["detail"] == detail
    assert last.output("c1")[0]["detail"] == detail


@pytest.mark.parametrize(
    ("feature", "missing"),
    [("shell_tool", {"exec_command", "write_stdin"}), ("view_image", {"view_image"})],
)
def test_a_tool_that_is_switched_off_is_not_offered(
    place: Workplace, feature: str, missing: set[str]
) -> None:
    done = [ev_created(), *ev_message("Done."), ev_completed()]
    with ScriptedServer([done, done]) as server:
        place.run(server)
        place.rerun("--disable", feature, "go")
    every, without = (
        {tool.get("name") for tool in r.body["tools"]} for r in server.requests
    )
    assert every - without == missing


@pytest.mark.parametrize(
    ("model", "thinking", "max_tokens"),
    [
        ("claude-opus-5-5", {"type": "adaptive"}, 128_000),
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 10_000}, 64_000),
    ],
)
def test_a_model_of_anthropic_is_asked_as_its_generation_wants(
    place: Workplace, model: str, thinking: dict[str, Any], max_tokens: int
) -> None:
    with ScriptedServer(
        [[ev_created(), *ev_message("Done."), ev_completed()]]
    ) as server:
        place.run(server, "-m", model, "go", wire_api="anthropic")
    body = server.requests[0].body
    assert (body["thinking"], body["max_tokens"]) == (thinking, max_tokens)


def test_the_longest_output_is_sent_where_it_is_needed_or_set(place: Workplace) -> None:
    done = [ev_created(), *ev_message("Done."), ev_completed()]
    with ScriptedServer([done, done]) as server:
        place.run(server, "-m", "deepseek-v4-pro", "go", wire_api="chat")
        place.rerun("-m", "deepseek-v4-pro", "-c", "model_max_output_tokens=500", "go")
    plain, limited = (request.body for request in server.requests)
    assert {"max_completion_tokens", "max_tokens"} & plain.keys() == set()
    assert limited["max_completion_tokens"] == 500


@pytest.mark.parametrize("wire_api", ["responses", "chat", "anthropic", "text"])
def test_a_model_without_images_gets_a_note_in_their_place(
    place: Workplace, wire_api: str
) -> None:
    (place.cwd / "a.png").write_bytes(_PNG)
    done = [ev_created(), *ev_message("Done."), ev_completed()]
    with ScriptedServer([done], text_tools=wire_api == "text") as server:
        args = ("-m", "deepseek-v4-pro", "-i", "a.png", "--", "look")
        outcome = place.run(server, *args, wire_api=wire_api)
    assert "'deepseek-v4-pro' takes no images:" in str(outcome.items[0])
    text = server.requests[0].raw.decode()
    assert "(an image was left out: this model takes text only)" in text
    assert "image/png" not in text
    assert '"view_image"' not in text


def test_a_provider_without_the_default_model_wants_one(place: Workplace) -> None:
    outcome = place.rerun("-c", "model_provider=anthropic", "go")
    assert outcome.code == 78
    assert (
        "'anthropic' has no model 'gpt-6.1-sol': say which with -m anthropic/MODEL"
        in outcome.err
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'model_providers.w = {base_url = "http://h/", wire_api = "chatt"}',
            ".wire_api: 'chatt'",
        ),
        (
            'model_providers.w = {wire_api = "chat"}',
            "model_providers.w.base_url is missing",
        ),
        (
            'model_providers.w.base_url = "h/v1"',
            "'h/v1' is no http:// or https:// address",
        ),
        (
            'model_providers.w = {base_url = "http://h/", profile = {toolz = "text"}}',
            "model_providers.w.profile.toolz: no such setting",
        ),
        (
            'model_fallbacks = ["nope/m"]',
            "model_fallbacks: Model provider `nope` not found",
        ),
        (
            'model_fallbacks = ["m"]',
            "model_fallbacks: 'm' names no provider or no model",
        ),
        (
            'model_catalog_json = "/missing.json"',
            "model_catalog_json: /missing.json: No such file",
        ),
        ('tool_choice = "x:"', "tool_choice: 'x:' is not supported"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_the_file_and_the_line(
    place: Workplace, line: str, message: str
) -> None:
    config = place.home / "config.toml"
    config.write_text(f"hide_agent_reasoning = true\n{line}\n", encoding="utf-8")
    name = "w/m" if line.startswith("model_providers.w") else "ollama/m"
    outcome = place.rerun("-m", name, "go")
    assert outcome.code == 78
    told = outcome.err.splitlines()[-1]
    assert f"{config}:2: " in told
    assert message in told


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("anthropc/some-model", "did you mean `anthropic/some-model`?"),
        ("me/m", "`codex-py providers list` shows the providers."),
    ],
)
def test_a_misspelt_provider_is_told_before_openai_is_asked(
    place: Workplace, name: str, meant: str
) -> None:
    outcome = place.rerun("-m", name, "go")
    assert outcome.code == 77
    sentence = (
        f"OpenAI is asked for a model `{name}`, because it names no provider; {meant}"
    )
    assert sentence in [item.get("message") for item in outcome.items]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("gemini-3.8-flash", "gemini/gemini-3.8-flash"),
        ("google/gemini-3.8-flash", "gemini/gemini-3.8-flash"),
        ("claude/claude-opus-5.5", "anthropic/claude-opus-5-5"),
        ("anthropc/claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("anthropic", "anthropic/claude-opus-5-5"),
        ("openrouter", "openrouter/MODEL"),
        ("ollama:llama3", "ollama/llama3"),
        ("sonnet", "anthropic/claude-sonnet-5-5"),
        ("Claude", "anthropic/claude-opus-5-5"),
    ],
)
def test_a_model_of_another_provider_is_told_before_openai_is_asked(
    place: Workplace, name: str, meant: str
) -> None:
    outcome = place.rerun("-m", name, "go")
    assert outcome.code == 77
    sentence = f"OpenAI is asked for a model `{name}`; did you mean `{meant}`?"
    assert sentence in [item.get("message") for item in outcome.items]


@pytest.mark.parametrize(
    "name", ["gpt-5.5", "gpt-5.5-mini", "codex-next", "ft:gpt-4.1:a"]
)
def test_a_model_that_openai_may_have_is_not_doubted(
    place: Workplace, name: str
) -> None:
    outcome = place.rerun("-m", name, "go")
    assert outcome.code == 77
    assert "OpenAI is asked" not in str(outcome.items)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("anthropc/claude-opus-5-5", "did you mean `anthropic/claude-opus-5-5`?"),
        ("mistralai/devstral", None),
        ("moonshotai/kimi-k3", None),
        ("openai/gpt-5.5", None),
        ("deepseek-ai/x", None),
    ],
)
def test_a_gateway_may_have_publishers_that_are_named_like_providers(
    place: Workplace, name: str, hint: str | None
) -> None:
    with ScriptedServer(
        [[ev_created(), *ev_message("Done."), ev_completed()]]
    ) as server:
        place.configure(server)
        outcome = place.rerun("-c", f"model={name}", "-c", "model_provider=mock", "go")
    told = str([item.get("message") for item in outcome.items])
    assert ("names no provider" in told) == (hint is not None)
    assert hint is None or hint in told


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("gpt5.5", "gpt-5.5"),
        ("gp-5.5", "gpt-5.5"),
        ("gpt5", "gpt-5"),
        ("gpt 5.5", "gpt-5.5"),
        ("opus", None),
        ("gqt-9.9", None),
        ("own-model", None),
    ],
)
def test_a_misspelt_model_is_told_with_the_one_that_is_like_it(
    place: Workplace, name: str, similar: str | None
) -> None:
    with ScriptedServer(
        [[ev_created(), *ev_message("Done."), ev_completed()]]
    ) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        outcome = place.rerun("-m", name, "go", env=env)
    told = str([item.get("message") for item in outcome.items])
    assert f"Model metadata for `{name}` not found" in told
    assert ("Did you mean" in told) == (similar is not None)
    assert f"Did you mean {similar}?" in told or similar is None


def test_a_name_with_a_slash_is_not_doubted_where_the_address_of_openai_is_set(
    place: Workplace,
) -> None:
    with ScriptedServer(
        [[ev_created(), *ev_message("Done."), ev_completed()]]
    ) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "k"}
        outcome = place.rerun("-m", "team/m", "go", env=env)
    assert "names no provider" not in str(outcome.items)


def test_a_model_that_does_not_know_patches_gets_their_grammar_and_an_example(
    place: Workplace,
) -> None:
    with ScriptedServer(
        [[ev_created(), *ev_message("Done."), ev_completed()]]
    ) as server:
        place.run(server, "-m", "glm-5", "go", wire_api="chat")
    functions = [tool["function"] for tool in server.requests[0].body["tools"]]
    (patch,) = [function for function in functions if function["name"] == "apply_patch"]
    assert '"*** Update File: " name LF move? change?' in patch["description"]
    assert (
        "\n*** Update File: path/of/file.py\n@@ def greet():\n" in patch["description"]
    )


def _has_image(item: dict[str, Any]) -> bool:
    return any(part["type"] == "input_image" for part in item.get("content", []))


def test_a_prompt_that_cannot_fit_is_refused_before_it_is_sent(
    place: Workplace,
) -> None:
    done = [*ev_message("done"), ev_completed()]
    window = ("-c", "model_context_window=1000")
    fallback = ("-c", 'model_fallbacks=["mock/mystery"]')
    with ScriptedServer([done, done, done]) as server:
        outcome = place.run(server, *window, "-", stdin=b"x " * 4004)
        assert server.requests == []
        assert (outcome.code, outcome.error["code"]) == (2, "context_length_exceeded")
        assert outcome.error["message"] == (
            "The prompt is too long: it has at least about 1,001 tokens, and the context window of"
            " gpt-5.5 has 1,000."
        )
        for options, words in [
            (window, 4003),
            # Another model may take over, or the window is a guess.
            ((*window, *fallback), 4004),
            (("-m", "mystery"), 1_100_000),
        ]:
            assert place.run(server, *options, "-", stdin=b"x " * words).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-m", ""), "`model`: '' names no model"),
        (("-m", "m/"), "`model`: 'm/' names no model"),
        (("--allow-domain", "http://pypi.org/"), "write a host such as `pypi.org`"),
        (("--allow-domain", "a b"), "unsupported domain pattern syntax"),
        (("--verify-timeout", "soon"), "`gates.verify_timeout`"),
    ],
)
def test_an_option_without_a_good_value_is_a_mistake_of_the_command_line(
    place: Workplace, options: tuple[str, str], message: str
) -> None:
    outcome = place.rerun(*options, "go")
    assert (outcome.code, outcome.events) == (2, [])
    assert message in outcome.err
