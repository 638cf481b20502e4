"""Also tests `streams/escape_key.py`."""

import re
import stat
import tomllib
from collections.abc import Callable, Generator
from contextlib import ExitStack

import httpx
import pytest

from codex_py.testing import ev_completed, ev_message
from tests.frontends.tui.terminals import leave
from tests.support.chatgpt import ChatGPT, login_ports
from tests.support.program import Workplace, environment
from tests.support.pty_program import PtyProgram
from tests.support.server import ScriptedServer

ANSWER = [[*ev_message("Hello."), ev_completed()]]
KEY = "sk-proj-0123456789abcdefghijkl"
PAGE = "No model can be asked yet"

Begin = Callable[..., PtyProgram]


@pytest.fixture
def begin(place: Workplace) -> Generator[Begin]:
    """Start in a home where nothing is configured but trust."""
    with ExitStack() as stack:

        def begin(columns: int = 80, rows: int = 24, **env: str) -> PtyProgram:
            trusted = f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n'
            (place.home / "config.toml").write_text(trusted, encoding="utf-8")
            variables = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **env}
            # Nothing answers where model servers are looked for, unless a test says so.
            variables = {"CODEX_OSS_BASE_URL": "http://127.0.0.1:1/v1", **variables}
            program = PtyProgram(
                (),
                place.cwd,
                environment(place.home, variables),
                columns=columns,
                rows=rows,
                codex_py=True,
            )
            return stack.enter_context(program)

        yield begin


def _login_pages(program: PtyProgram) -> list[str]:
    """The addresses that a user was asked to open, in order."""
    return re.findall(r"http://\S+/oauth/authorize\?\S+(?=\r)", program.raw.decode())


def _files_with(place: Workplace, text: str) -> list[str]:
    found = [path for path in place.home.rglob("*") if path.is_file()]
    return [path.name for path in found if text.encode() in path.read_bytes()]


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (60, 20), (40, 12), (30, 12)])
def test_the_reason_why_a_key_is_refused_is_on_the_screen_in_full(
    begin: Begin, columns: int, rows: int
) -> None:
    with ScriptedServer([]):
        program = begin(columns, rows)
        program.wait_for("1. Paste an A")
        program.type("k")
        program.wait_for("Enter keeps it")
        program.paste("sk-te st")
        program.wait_for("********")
        program.press("enter")
        program.wait_for("This is no API key")
        program.settle()
        words = " ".join(program.text.split())
        assert "blanks, several lines, or characters that no key can have." in words
        at = program.text.index("This is no API key")
        reason = program.text[at:].split("\n\n")[0].split("\n")
        assert all(row.startswith("  ") for row in reason[1:])


@pytest.mark.parametrize("is_on_page", [True, False])
def test_a_key_is_kept_in_auth_json_and_nowhere_else(
    begin: Begin, place: Workplace, is_on_page: bool
) -> None:
    with ScriptedServer(ANSWER) as server:
        program = begin(60, 20, OPENAI_BASE_URL=server.base_url)
        program.wait_for(PAGE)
        if not is_on_page:
            program.type("k")
            program.wait_for("The API key")
        program.paste(KEY)
        program.wait_for("*" * len(KEY))
        # What is cut out of the field cannot be put into a prompt.
        program.press("c-u")
        program.settle()
        program.paste(KEY)
        program.wait_for("*" * len(KEY))
        program.press("enter")
        program.wait_for_question("Keep secrets from the agent")
        program.press("enter")
        program.wait_for("Ask codex-py to do anything")
        program.press("c-y")
        program.type("Hello?")
        program.wait_for("\u203a Hello?")
        program.press("enter")
        program.wait_for("Hello.")
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
        leave(program)
    assert KEY.encode() not in program.raw
    assert _files_with(place, KEY) == ["auth.json"]
    assert stat.S_IMODE((place.home / "auth.json").stat().st_mode) == 0o600
    assert not (place.home / "codex-py" / "config.toml").exists()


@pytest.mark.parametrize("end", ["", "\r"])
def test_a_key_that_comes_as_if_it_were_typed_goes_to_its_field(
    begin: Begin, place: Workplace, end: str
) -> None:
    program = begin()
    program.wait_for(PAGE)
    program.settle()
    program.type(KEY[:2])
    program.type(KEY[2:] + end)
    program.wait_for("*" * len(KEY))
    program.press("enter")
    program.wait_for("API key saved")
    assert _files_with(place, KEY) == ["auth.json"]
    program.press("esc")
    program.wait_for("Ask codex-py to do anything")
    assert KEY.encode() not in program.raw
    assert b"sk-" not in program.raw


def test_a_prompt_that_is_typed_on_the_page_goes_to_the_composer(begin: Begin) -> None:
    program = begin()
    program.wait_for(PAGE)
    program.settle()
    program.type("knock, what is this?")
    program.wait_for("\u203a knock, what is this?")


def test_a_model_of_this_machine_is_used_from_then_on_and_secrets_are_denied_after_a_yes(
    begin: Begin, place: Workplace
) -> None:
    with ScriptedServer(ANSWER, models=["qwen3:8b"]) as server:
        program = begin(140, 40, CODEX_OSS_PORT=str(server.port), CODEX_OSS_BASE_URL="")
        program.wait_for("ollama on this machine: qwen3:8b")
        program.type("2")
        program.wait_for_question("Keep secrets from the agent")
        program.type("y")
        program.wait_for("holds from now on")
        program.wait_for("Ask codex-py to do anything")
        program.type("Hello?\r")
        program.wait_for("Hello.")
        assert server.requests[-1].body["model"] == "qwen3:8b"
        leave(program)
    kept = tomllib.loads((place.home / "codex-py" / "config.toml").read_text("utf-8"))
    assert kept == {
        "model_provider": "ollama",
        "model": "qwen3:8b",
        "protection": {"secrets": "deny"},
    }


def test_esc_leaves_the_page_and_nothing_has_changed(
    begin: Begin, place: Workplace
) -> None:
    program = begin(TERM="dumb", LC_ALL="C", NO_COLOR="1")
    program.wait_for(PAGE)
    program.press("esc")
    program.wait_for("With another service")
    program.wait_for("Ask codex-py to do anything")
    assert not (place.home / "auth.json").exists()
    assert not (place.home / "codex-py" / "config.toml").exists()


def test_the_demo_comes_back_to_the_page(begin: Begin) -> None:
    program = begin(CI="1")
    program.wait_for(PAGE)
    program.type("d")
    program.wait_for("What it changed:")
    program.wait_for(PAGE)


def test_a_plan_is_used_after_the_user_has_signed_in(
    begin: Begin, place: Workplace
) -> None:
    own = place.home / "codex-py"
    own.mkdir()
    with login_ports(), ChatGPT(ANSWER) as chatgpt:
        address = f'chatgpt_base_url = "{chatgpt.url}/backend-api"\n'
        (own / "config.toml").write_text(address, encoding="utf-8")
        env = {**chatgpt.login_environment, "BROWSER": "true"}
        program = begin(100, 40, **env)
        program.wait_for("2. Sign in with ChatGPT")
        program.type("c")
        program.wait_for("Esc or Ctrl-C goes back to the choices.")
        program.wait_for("codex-py login --device-auth")
        program.press("c-c")
        program.wait_for("Signing in was interrupted")
        program.wait_for_question(PAGE)
        assert not (place.home / "auth.json").exists()
        program.type("2")
        program.wait_until(lambda: len(_login_pages(program)) == 2)
        consented = httpx.get(_login_pages(program)[-1])
        httpx.get(consented.headers["location"])
        program.wait_for_question("Keep secrets from the agent")
        program.press("enter")
        program.wait_for("Signed in with ChatGPT.")
        program.wait_for("Ask codex-py to do anything")
        program.type("Hello?\r")
        program.wait_for("Hello.")
        leave(program)
        sent = chatgpt.requests[-1].headers
        token = sent["authorization"].removeprefix("Bearer ")
        assert _files_with(place, token) == ["auth.json"]


def test_esc_alone_leaves_the_sign_in_page_as_ctrl_c_does(
    begin: Begin, place: Workplace
) -> None:
    own = place.home / "codex-py"
    own.mkdir()
    with login_ports(), ChatGPT() as chatgpt:
        address = f'chatgpt_base_url = "{chatgpt.url}/backend-api"\n'
        (own / "config.toml").write_text(address, encoding="utf-8")
        program = begin(100, 40, **chatgpt.login_environment, BROWSER="true")
        program.wait_for("2. Sign in with ChatGPT")
        program.type("c")
        program.wait_for("Esc or Ctrl-C goes back to the choices.")
        program.wait_for("codex-py login --device-auth")
        # The sequence of another key begins with Esc too.
        program.press("up")
        program.type("hello\r")
        program.wait_for("that is not an address that ends a login")
        program.press("esc")
        program.wait_for("Signing in was interrupted")
        program.wait_for_question(PAGE)
        assert not (place.home / "auth.json").exists()


def test_no_plan_is_offered_where_only_keys_are_allowed(
    begin: Begin, place: Workplace
) -> None:
    folder = place.home / "codex-py"
    folder.mkdir()
    setting = 'forced_login_method = "api"\n'
    (folder / "config.toml").write_text(setting, encoding="utf-8")
    program = begin()
    program.wait_for(PAGE)
    program.wait_for("2. See the demo")
    assert "ChatGPT" not in program.text


@pytest.mark.parametrize(
    ("variable", "choice"),
    [
        ("ANTHROPIC_API_KEY", "anthropic/claude-opus-5-5"),
        ("GEMINI_API_KEY", "gemini/gemini-3.8-flash"),
        ("DEEPSEEK_API_KEY", "deepseek/deepseek-v4-pro"),
    ],
)
def test_a_key_of_another_provider_is_offered_first_and_used_from_then_on(
    begin: Begin, place: Workplace, variable: str, choice: str
) -> None:
    program = begin(**{variable: "sk-any"})
    program.wait_for(f"Use {choice}: {variable} is set")
    program.press("enter")
    program.wait_for_question("Keep secrets from the agent")
    program.press("esc")
    program.wait_for("Ask codex-py to do anything")
    leave(program)
    provider, _, model = choice.partition("/")
    kept = tomllib.loads((place.home / "codex-py" / "config.toml").read_text("utf-8"))
    assert kept == {"model_provider": provider, "model": model}


def test_a_key_of_a_provider_without_a_suggested_model_is_named(
    begin: Begin, place: Workplace
) -> None:
    program = begin(100, 40, GROQ_API_KEY="any", OPENROUTER_API_KEY="any")
    program.wait_for("Say how to use openrouter/MODEL: OPENROUTER_API_KEY is set")
    assert "GROQ_API_KEY is set" in program.text
    assert PAGE not in program.text
    program.press("enter")
    program.wait_for("OPENROUTER_API_KEY is set; to use it: -m openrouter/MODEL.")
    leave(program)
    assert not (place.home / "codex-py" / "config.toml").exists()


def test_an_empty_key_of_another_provider_is_not_offered(begin: Begin) -> None:
    program = begin(ANTHROPIC_API_KEY=" ", GITHUB_TOKEN="ghp_any")
    program.wait_for(PAGE)
    assert "is set" not in program.text


@pytest.mark.parametrize("name", ["CODEX_API_KEY", "OPENAI_API_KEY"])
def test_with_a_key_in_the_environment_there_is_no_page(
    begin: Begin, name: str
) -> None:
    program = begin(**{name: "sk-any"})
    program.wait_for("/ commands, @ files")
    assert PAGE not in program.text
