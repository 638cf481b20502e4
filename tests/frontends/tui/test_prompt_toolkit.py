"""What the terminal uses of prompt-toolkit beyond what its reference promises: hence the upper bound in
`pyproject.toml`. A release that takes a part away fails the test of that name.
"""

from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.input import DummyInput, create_pipe_input
from prompt_toolkit.output import DummyOutput


@pytest.mark.parametrize(
    ("module", "name"),
    [
        # keyboard.py: a parser of our own that takes sequences whole.
        ("input.vt100", "Vt100Input.read_keys"),
        ("input.vt100_parser", "Vt100Parser.feed"),
        ("input.vt100_parser", "Vt100Parser.flush"),
        ("input.vt100_parser", "Vt100Parser.reset"),
        # key_codes.py
        ("input.ansi_escape_sequences", "ANSI_SEQUENCES"),
        # screen.py, output.py: finished lines above the frame.
        ("renderer", "Renderer.erase"),
        ("renderer", "Renderer.last_rendered_screen"),
        ("output.vt100", "Vt100_Output.erase_down"),
        # fitting.py, compose/display.py
        ("layout.utils", "explode_text_fragments"),
        ("utils", "get_cwidth"),
    ],
)
def test_a_part_of_a_module_is_there(module: str, name: str) -> None:
    attrgetter(name)(import_module(f"prompt_toolkit.{module}"))


def keyboard_parser() -> Any:
    with create_pipe_input() as keyboard:
        return attrgetter("vt100_parser.feed_key_callback")(keyboard)


def part_of_application(name: str) -> Callable[[], Any]:
    return lambda: attrgetter(name)(
        Application(input=DummyInput(), output=DummyOutput())
    )


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(keyboard_parser, id="Vt100Input.vt100_parser"),
        # compose/window.py: what was read along with Enter.
        pytest.param(
            part_of_application("key_processor.input_queue"), id="input_queue"
        ),
        # program.py
        pytest.param(
            part_of_application("key_processor.before_key_press"), id="before_key_press"
        ),
        pytest.param(
            part_of_application("key_processor.after_key_press"), id="after_key_press"
        ),
    ],
)
def test_a_part_of_an_object_is_there(part: Callable[[], Any]) -> None:
    part()
