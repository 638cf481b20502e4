import os
from collections.abc import Sequence

from codex_py.frontends.exec.json_lines import JsonLines
from codex_py.protocol.event_items import AgentMessage, CommandExecution
from codex_py.protocol.events import (
    Error,
    Event,
    ItemCompleted,
    ItemStarted,
    MessageDelta,
    ThreadStarted,
    TurnCompleted,
    TurnStarted,
)
from codex_py.protocol.stream import Usage
from codex_py.streams.standard import OutputStream


def lines_of(events: Sequence[Event]) -> list[str]:
    ours, theirs = os.pipe()
    sink = JsonLines(OutputStream(theirs))
    for event in events:
        sink(event)
    os.close(theirs)
    with open(ours, encoding="utf-8", newline="\n") as file:  # noqa: PTH123 - a descriptor
        return file.read().split("\n")


def test_every_event_is_a_line() -> None:
    assert lines_of(
        [
            ThreadStarted("0199"),
            TurnStarted(),
            MessageDelta("never shown"),
            ItemStarted(CommandExecution(id="item_0", command="ls", cwd="/r")),
            ItemCompleted(
                AgentMessage(id="item_1", text="ünï\n\u2028\u2029\x85 \ud800")
            ),
            Error("late", "stream", retryable=True),
            TurnCompleted(Usage(input_tokens=3, output_tokens=1)),
        ]
    ) == [
        '{"type":"thread.started","thread_id":"0199"}',
        '{"type":"turn.started"}',
        '{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"ls",'
        '"aggregated_output":"","exit_code":null,"status":"in_progress"}}',
        '{"type":"item.completed","item":{"id":"item_1","type":"agent_message",'
        '"text":"ünï\\n\\u2028\\u2029\\u0085 \ufffd"}}',
        '{"type":"error","message":"late","code":"stream","retryable":true,"http_status":null}',
        '{"type":"turn.completed","usage":{"input_tokens":3,"cached_input_tokens":0,'
        '"cache_write_input_tokens":0,"output_tokens":1,"reasoning_output_tokens":0}}',
        "",
    ]


def test_a_line_goes_out_as_it_happens() -> None:
    ours, theirs = os.pipe()
    JsonLines(OutputStream(theirs))(TurnStarted())
    try:
        assert os.read(ours, 100) == b'{"type":"turn.started"}\n'
    finally:
        os.close(ours)
        os.close(theirs)
