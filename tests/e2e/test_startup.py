"""What the program imports, and when: start-up is as quick as this list is short.

Tests `app/features/table.py`.
"""

import socket
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_function_call,
    ev_message,
)
from tests.support.hooks import configure
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

SHOW_IMPORTS = {"PYTHONPROFILEIMPORTTIME": "1"}
"""A line on standard error for each module, when it is loaded."""

NOT_IN_A_PLAIN_TURN = {
    *(
        "codex_py.mcp",
        "codex_py.app.features.mcp",
        "codex_py.execpolicy",
        "codex_py.rollout.reader",
        "httpx_sse",
        "jsonschema",
        "markdown_it",
        "mcp",
        "prompt_toolkit",
        "pygments",
        "rich",
        "tomlkit",
    ),
    *("tree_sitter", "unidiff", "yaml"),
    # Other providers, and servers on this machine.
    *(
        "codex_py.app.providers.local_servers",
        "codex_py.commands.providers.providers_command",
        "codex_py.commands.providers.trial",
    ),
    *("codex_py.model.anthropic", "codex_py.model.chat", "codex_py.model.text"),
    # The login with ChatGPT, which a run with a key does not need.
    *("codex_py.app.plan_account", "codex_py.app.plan_models"),
    "codex_py.model.chatgpt",
    # Features that nothing asks for.
    *(
        "codex_py.app.features.functions",
        "codex_py.app.features.notify",
        "codex_py.app.resumed",
    ),
    *("codex_py.config.skills", "codex_py.app.features.skills"),
    "codex_py.app.features.budget",
}
BEHIND_THE_REQUEST = {
    "codex_py.app.tool_parts",
    "codex_py.process",
    "codex_py.tools.router",
}
"""The loaded half: `app/tool_parts.py`, and what it imports at its top."""
NOT_FOR_A_CALL_OF_TRUE = {
    *("importlib.metadata", "pydantic", "pydantic_core"),
    *("codex_py.app.features.agents.children", "codex_py.tools.agents"),
    *("codex_py.execpolicy.rules", "codex_py.execpolicy.starlark"),
    *("codex_py.mcp", "codex_py.tools.mcp.catalogue", "codex_py.tools.mcp.tool"),
    *(
        "codex_py.patch.diff",
        "codex_py.patch.files",
        "codex_py.patch.match",
        "codex_py.patch.plan",
    ),
    *("codex_py.patch.envelope.apply", "codex_py.patch.report", "codex_py.patch.undo"),
}
NOT_BEFORE_THE_REQUEST = {
    *NOT_IN_A_PLAIN_TURN,
    *BEHIND_THE_REQUEST,
    *("httpcore", "importlib.metadata", "pydantic", "pydantic_core"),
    "codex_py.tools.base",
}

MORE_THAN_SOCKETS_HOLD = 16_000_000


def imports(stderr: str) -> set[str]:
    lines = (line for line in stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def among(packages: Iterable[str], modules: set[str]) -> set[str]:
    """Those of the modules that are one of the packages, or in one."""
    return {
        m for m in modules for package in packages if f"{m}.".startswith(f"{package}.")
    }


def imports_before_the_request(
    place: Workplace, folder: Path, *options: str
) -> set[str]:
    """What is loaded when the first byte arrives.

    The request is too long to be sent before someone reads it, and nobody does: the program stands
    still where it sends.
    """
    prompt, errors = folder / "prompt", folder / "errors"
    prompt.write_text("x" * MORE_THAN_SOCKETS_HOLD, encoding="ascii")
    with ScriptedServer() as unused, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(120)
        port = listener.getsockname()[1]
        # The window of an unknown model is a guess, which refuses no prompt.
        place.configure(unused, model="unknown", base_url=f"http://127.0.0.1:{port}/v1")
        with prompt.open("rb") as stdin, errors.open("wb") as stderr:
            program = place.start(
                *("-c", "model_context_window=10000000"),
                *options,
                "-",
                env=SHOW_IMPORTS,
                stdin=stdin.fileno(),
                stderr=stderr.fileno(),
            )
        with program:
            try:
                connection, _ = listener.accept()
                with connection:
                    assert connection.recv(4) == b"POST"
                    return imports(errors.read_text("utf-8"))
            finally:
                program.kill()


def test_the_first_request_waits_for_no_heavy_import(
    place: Workplace, tmp_path: Path
) -> None:
    loaded = imports_before_the_request(place, tmp_path)
    assert {
        "httpx",
        "codex_py.app.session",
        "codex_py.app.features.turn_changes",
    } <= loaded
    assert among(NOT_BEFORE_THE_REQUEST, loaded) == set()
    assert (
        among({"codex_py.app.features.hooks", "codex_py.config.hooks"}, loaded) == set()
    )


def test_the_tools_are_loaded_while_a_server_holds_the_head_of_its_answer(
    place: Workplace, tmp_path: Path
) -> None:
    errors = tmp_path / "errors"
    seen: set[str] = set()

    def answer(_request: RecordedRequest) -> Reply:
        deadline = time.monotonic() + 20
        while not seen and time.monotonic() < deadline:
            time.sleep(0.02)
            seen.update(
                among({"codex_py.app.tool_parts"}, imports(errors.read_text("utf-8")))
            )
        return Reply(events=[*ev_message("done"), ev_completed()])

    with ScriptedServer([answer]) as server, errors.open("wb") as stderr:
        place.configure(server)
        program = place.start(env=SHOW_IMPORTS, stderr=stderr.fileno())
        with program:
            program.communicate(timeout=60)
    assert program.returncode == 0
    assert seen == {"codex_py.app.tool_parts"}


def test_hooks_before_the_first_request_need_no_heavy_import(
    place: Workplace, tmp_path: Path
) -> None:
    configure(place, {"SessionStart": ["echo hi"], "UserPromptSubmit": ["echo ho"]})
    bypass = "--dangerously-bypass-hook-trust"
    loaded = imports_before_the_request(place, tmp_path, bypass)
    assert {"codex_py.app.features.hooks.runs", "codex_py.process.piped"} <= loaded
    heavy = NOT_BEFORE_THE_REQUEST - {"codex_py.process"}
    assert among(heavy, loaded) == set()


def test_limits_need_no_heavy_import_before_the_first_request(
    place: Workplace, tmp_path: Path
) -> None:
    limits = ("--max-turns=5", "--max-tokens=90m", "--max-time=1h")
    loaded = imports_before_the_request(place, tmp_path, *limits)
    assert "codex_py.app.features.budget" in loaded
    allowed = {"codex_py.app.features.budget"}
    assert among(NOT_BEFORE_THE_REQUEST - allowed, loaded) == set()


def imports_of_a_call(place: Workplace, command: str) -> set[str]:
    with ScriptedServer(
        [
            [*ev_function_call("c", "exec_command", {"cmd": command}), ev_completed()],
            [*ev_message("done"), ev_completed()],
        ]
    ) as server:
        return imports(place.run(server, env=SHOW_IMPORTS).err)


def test_plain_commands_need_no_parser(place: Workplace) -> None:
    loaded = imports_of_a_call(place, "ls && echo done")
    assert {"codex_py.execpolicy.safety", *BEHIND_THE_REQUEST} <= loaded
    assert among({"tree_sitter", "tree_sitter_bash"}, loaded) == set()


def test_a_call_loads_what_it_needs_alone(place: Workplace) -> None:
    loaded = imports_of_a_call(place, "true")
    assert loaded >= BEHIND_THE_REQUEST
    assert among(NOT_FOR_A_CALL_OF_TRUE, loaded) == set()
    assert "codex_py.patch.undo.recorder" in imports_of_a_call(place, "sh -c :")


def test_a_plain_turn_loads_nothing_that_only_other_frontends_need(
    place: Workplace,
) -> None:
    with ScriptedServer([[*ev_message("done"), ev_completed()]]) as server:
        outcome = place.run(server, env=SHOW_IMPORTS)
    loaded = imports(outcome.err)
    assert outcome.messages == ["done"]
    assert "codex_py.protocol.items" in loaded
    assert among(NOT_IN_A_PLAIN_TURN, loaded) == set()


@pytest.mark.parametrize("words", [[], ["exec"], ["apply"], ["mcp", "add"], ["undo"]])
def test_help_loads_neither_options_nor_commands(
    place: Workplace, words: list[str]
) -> None:
    done = run_codex_py([*words, "--help"], place.home, place.cwd, SHOW_IMPORTS)
    loaded = {m for m in imports(done.stderr.decode()) if m.startswith("codex_py.")}
    assert b"--help" in done.stdout
    packages = ("codex_py.config", "codex_py.command_line.arguments", "codex_py.core")
    assert among(packages, loaded) == set()
    assert among(["codex_py.commands", "codex_py.frontends"], loaded) == set()
    assert "codex_py.cli.help_pages" in loaded
