"""What is asked of a model depends on what is known of it. Values as Codex 0.169 sends them."""

from typing import Any

import pytest

from codex_py.testing import ScriptedServer, ev_completed, ev_created, ev_function_call, ev_message
from tests.support.program import Workplace

_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c02"
    "0000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)


@pytest.mark.parametrize(
    ("model", "effort"), [("gpt-5.6-sol", "max"), ("gpt-5.5", "xhigh"), ("mine", "medium")]
)
def test_ultra_is_sent_as_a_level_that_the_model_has(
    place: Workplace, model: str, effort: str
) -> None:
    with ScriptedServer([[ev_created(), *ev_message("Done."), ev_completed()]]) as server:
        place.run(server, "-m", model, "-c", "model_reasoning_effort=ultra", "go")
    assert server.requests[0].body["reasoning"]["effort"] == effort


@pytest.mark.parametrize(("model", "detail"), [("gpt-5.5", "original"), ("mine", "high")])
def test_images_are_sent_at_a_detail_that_the_model_takes(
    place: Workplace, model: str, detail: str
) -> None:
    (place.cwd / "a.png").write_bytes(_PNG)
    script = [
        [ev_created(), *ev_function_call("c1", "view_image", {"path": "a.png"}), ev_completed()],
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
    every, without = ({tool.get("name") for tool in r.body["tools"]} for r in server.requests)
    assert every - without == missing


def _has_image(item: dict[str, Any]) -> bool:
    return any(part["type"] == "input_image" for part in item.get("content", []))
