"""`[otel]`, through the real program and with a collector that reads what is exported.

Tests `extensions/otel/export.py`, `extensions/otel/keys.py`, `extensions/otel/settings.py`,
`extensions/otel/spans.py` and `extensions/otel/table.py`.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from codex_py.errors import ConfigError
from codex_py.extensions.otel import table
from codex_py.extensions.otel.table import Otel
from codex_py.testing import ev_completed, ev_failed, ev_function_call, ev_message
from codex_py.version import __version__
from tests.e2e.test_roles import Family, says
from tests.support.collector import Collector
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

DONE = [*ev_message("the answer"), ev_completed()]
TRACE, ABOVE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OUTSIDE = {"TRACEPARENT": f"00-{TRACE}-{ABOVE}-01", "TRACESTATE": "vendor=1"}
SECRETS = ("the prompt", "s3cret", "the answer")


def calling(command: str) -> list[dict[str, Any]]:
    return [
        *ev_function_call("call_1", "exec_command", {"cmd": command}),
        ev_completed(),
    ]


def endless(address: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """A collector that sends its clients away, and never ends to say so."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(307)
        handler.send_header("location", address)
        handler.end_headers()
        with suppress(OSError):
            while True:
                handler.wfile.write(b"x" * 65536)

    return answer


def configure(place: Workplace, server: ScriptedServer, toml: str) -> None:
    place.configure(server)
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(f"\n{toml}")


def ran(
    place: Workplace, told: Collector, *replies: Any, more: str = "", **env: str
) -> tuple[Outcome, ScriptedServer]:
    with ScriptedServer(list(replies)) as server:
        configure(place, server, told.config(more=more))
        return place.rerun("the prompt", env=env), server


@pytest.mark.parametrize("protocol", ["binary", "json"])
def test_a_turn_is_three_kinds_of_span_with_tokens_and_no_content(
    place: Workplace, protocol: str
) -> None:
    with Collector() as told, ScriptedServer([calling("echo s3cret"), DONE]) as server:
        configure(place, server, told.config(protocol))
        outcome = place.rerun("the prompt")
    assert (outcome.code, outcome.err) == (0, "")
    turn, tool = (
        told.span("invoke_agent codex-py"),
        told.span("execute_tool exec_command"),
    )
    chats = [span for span in told.spans if span["name"] == "chat gpt-5.5"]
    assert len(told.spans) == 4
    assert {span["parent"] for span in (tool, *chats)} == {turn["id"]}
    assert {span["trace"] for span in told.spans} == {turn["trace"]}
    assert turn["parent"] == ""
    first = chats[0]
    assert first["gen_ai.operation.name"] == "chat"
    assert first["gen_ai.request.model"] == "gpt-5.5"
    assert first["gen_ai.provider.name"] == "mock"
    assert first["gen_ai.usage.input_tokens"] > 0
    assert first["gen_ai.usage.output_tokens"] > 0
    assert first["gen_ai.request.stream"] is True
    for kind in ("input", "output"):
        used = [span[f"gen_ai.usage.{kind}_tokens"] for span in (turn, *chats)]
        assert used[0] == sum(used[1:])
    assert turn["gen_ai.agent.version"] == __version__
    assert tool["gen_ai.tool.name"] == "exec_command"
    assert tool["gen_ai.tool.type"] == "function"
    assert tool["gen_ai.tool.call.id"] == "call_1"
    assert not any(span["failed"] for span in told.spans)
    # A collector of another program's would be of no use without who it is.
    assert told.resource["service.name"] == "codex_exec"
    assert {headers["x-team"] for headers in told.headers} == {"blue"}
    tokens = [
        each for each in told.metrics if each["name"] == "gen_ai.client.token.usage"
    ]
    assert {each["gen_ai.token.type"]: each["sum"] for each in tokens} == {
        "input": sum(chat["gen_ai.usage.input_tokens"] for chat in chats),
        "output": sum(chat["gen_ai.usage.output_tokens"] for chat in chats),
    }
    durations = {
        each["name"]: each for each in told.metrics if each["name"].endswith("duration")
    }
    assert {name: each["n"] for name, each in durations.items()} == {
        "gen_ai.invoke_agent.duration": 1,
        "gen_ai.client.operation.duration": 2,
        "gen_ai.execute_tool.duration": 1,
    }
    assert (
        durations["gen_ai.execute_tool.duration"]["gen_ai.tool.name"] == "exec_command"
    )
    assert told.log("codex.tool_result")["success"] is True
    assert told.log("codex.user_prompt")["prompt"] == "[REDACTED]"
    whole = b" ".join(told.bodies)
    assert [secret for secret in SECRETS if secret.encode() in whole] == []


def test_content_is_told_where_it_is_asked_for(place: Workplace) -> None:
    with Collector() as told:
        more = "log_user_prompt = true\nlog_tool_output = true"
        ran(place, told, calling("echo s3cret"), DONE, more=more)
    assert told.log("codex.user_prompt")["prompt"] == "the prompt"
    assert "s3cret" in told.log("codex.tool_result")["output"]


def test_the_trace_of_the_environment_goes_on_in_requests_and_commands(
    place: Workplace,
) -> None:
    with Collector() as told:
        outcome, server = ran(
            place, told, calling("echo $TRACEPARENT"), DONE, **OUTSIDE
        )
    turn, tool = (
        told.span("invoke_agent codex-py"),
        told.span("execute_tool exec_command"),
    )
    assert (turn["trace"], turn["parent"]) == (TRACE, ABOVE)
    chats = [span["id"] for span in told.spans if span["name"].startswith("chat")]
    sent = [request.headers["traceparent"] for request in server.requests]
    assert sorted(sent) == sorted(f"00-{TRACE}-{id_}-01" for id_ in chats)
    assert {request.headers["tracestate"] for request in server.requests} == {
        "vendor=1"
    }
    (command,) = [item for item in outcome.items if item["type"] == "command_execution"]
    assert command["aggregated_output"].strip() == f"00-{TRACE}-{tool['id']}-01"


def test_a_failed_turn_and_a_failed_call_are_told(place: Workplace) -> None:
    with Collector() as told:
        outcome, _ = ran(
            place, told, calling("exit 3"), [ev_failed("invalid_prompt", "No.")]
        )
    assert outcome.code != 0
    turn = told.span("invoke_agent codex-py")
    assert turn["failed"]
    assert turn["error.type"]
    assert [
        span["failed"] for span in told.spans if span["name"].startswith("chat")
    ] == [
        False,
        True,
    ]


def test_a_subagent_is_below_the_call_that_started_it(place: Workplace) -> None:
    family = Family({"message": "task"}, task=[says("x")])
    with Collector() as told, family.server() as server:
        configure(place, server, told.config())
        assert place.rerun("go").code == 0
    spawn = told.span("execute_tool spawn_agent")
    child = next(
        span
        for span in told.spans
        if span["name"].startswith("invoke_agent")
        and span["name"] != "invoke_agent codex-py"
    )
    assert (child["parent"], child["trace"]) == (spawn["id"], spawn["trace"])


@pytest.mark.parametrize("fault", ["dead", "silent", "broken"])
def test_an_exporter_that_fails_costs_a_second_at_most_and_is_told_once(
    place: Workplace, fault: str
) -> None:
    told = Collector(status=500 if fault == "broken" else 200, silent=fault == "silent")
    with told:
        config = told.config()
        if fault == "dead":
            config = config.replace(told.url(""), "http://127.0.0.1:9")
        with ScriptedServer([DONE]) as server:
            configure(place, server, config)
            began = time.monotonic()
            outcome = place.rerun("go")
            took_s = time.monotonic() - began
    assert outcome.code == 0
    said = [line for line in outcome.err.splitlines() if "OpenTelemetry" in line]
    warned = [item for item in outcome.items if "OpenTelemetry" in str(item)]
    assert len(said) + len(warned) == 1
    # The program itself takes some of it, under load too.
    assert took_s < 20


@pytest.mark.parametrize(
    "more", ['headers = { x = "a\\nb" }', 'tls = { ca-certificate = "/nonexistent" }']
)
def test_a_failed_export_is_reported(place: Workplace, more: str) -> None:
    at = 'endpoint = "https://127.0.0.1:9/", protocol = "json"'
    with ScriptedServer([DONE]) as server:
        configure(
            place,
            server,
            f"[otel]\ntrace_exporter = {{ otlp-http = {{ {at}, {more} }} }}\n",
        )
        outcome = place.rerun("go")
    assert outcome.code == 0
    assert "cannot be reached" in str(outcome.items) + outcome.err


def test_a_variable_that_the_sdk_cannot_read_is_one_sentence(place: Workplace) -> None:
    variable = {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "many"}
    with Collector() as told, ScriptedServer([]) as server:
        configure(place, server, told.config())
        outcome = place.rerun("go", env=variable)
    assert outcome.code == 78
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT must be" in outcome.err
    assert "Traceback" not in outcome.err


def test_a_collector_keeps_nothing_busy_and_sends_nobody_elsewhere(
    place: Workplace,
) -> None:
    with (
        Collector() as other,
        Collector(answer=endless(other.url("/v1/traces"))) as told,
    ):
        outcome, _ = ran(place, told, DONE)
    assert outcome.code == 0
    assert other.received == []
    assert "answers with status 307" in str(outcome.items) + outcome.err


def test_no_cookie_of_a_collector_comes_back(place: Workplace) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("set-cookie", "a=b")
        handler.send_header("content-length", "0")
        handler.end_headers()

    with Collector(answer=answer) as told:
        ran(place, told, calling("sleep 1"), DONE, OTEL_BSP_SCHEDULE_DELAY="20")
    assert len([path for path, _ in told.received if path == "/v1/traces"]) > 1
    assert not any("cookie" in headers for headers in told.headers)


def test_a_project_names_no_exporter(place: Workplace) -> None:
    with Collector() as told, ScriptedServer([DONE]) as server:
        place.configure(server)
        folder = place.cwd / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(told.config(), encoding="utf-8")
        with (place.home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(f'[projects."{place.cwd}"]\ntrust_level = "trusted"\n')
        assert place.rerun("go").code == 0
    assert told.received == []


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            'exporter = { otlp-grpc = { endpoint = "x" } }',
            "only `otlp-http` is supported",
        ),
        (
            'exporter = { otlp-http = { endpoint = "http://x" } }',
            "an `endpoint` and a `protocol`",
        ),
        ('exporter = "other"', "otel.exporter"),
        (
            'exporter = { otlp-http = { endpoint = "x", protocol = "json" } }',
            "`endpoint` must begin",
        ),
    ],
)
def test_a_wrong_exporter_stops_the_start(
    place: Workplace, setting: str, said: str
) -> None:
    with ScriptedServer([]) as server:
        configure(place, server, f"[otel]\n{setting}\n")
        outcome = place.rerun("go")
    assert outcome.code == 78
    assert said in outcome.err


def test_without_the_packages_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table, "find_spec", dict[str, object]().get)
    with pytest.raises(ConfigError, match=r"pip install 'codex-py-agent\[otel\]'"):
        table.require_packages()


def test_only_an_exporter_turns_the_export_on() -> None:
    exporter = {"otlp-http": {"endpoint": "http://x", "protocol": "json"}}
    assert Otel({"exporter": exporter}).has_exporter
    assert Otel({"metrics_exporter": exporter}).has_exporter
    assert not Otel({"exporter": "none", "environment": "dev"}).has_exporter
    assert not Otel({}).has_exporter


def test_nothing_of_it_is_loaded_without_the_table(place: Workplace) -> None:
    code = (
        "import sys, codex_py.app.features.table;"
        "print([name for name in sys.modules if 'opentelemetry' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.strip() == "[]"
