"""Shapes of outputs and items: Codex 0.169."""

import base64
import json
from typing import Any

import pytest

from codex_py.protocol.image_rule import image_rule
from codex_py.protocol.tools import ToolOutput
from codex_py.tools.mcp.output import MAX_ITEM_BYTES, call_output, item_result
from tests.support import images

PNG = base64.b64encode(images.PNG).decode()
HEADER = {"type": "input_text", "text": "Wall time: 1.5000 seconds\nOutput:"}


def output(result: dict[str, Any], limit_tokens: int = 1000) -> ToolOutput:
    return call_output(
        result,
        1.5,
        limit_tokens=limit_tokens,
        image_rule=image_rule("original", "responses"),
    )


def parts(*content: Any, limit_tokens: int = 1000) -> list[dict[str, Any]]:
    shown = output({"content": list(content)}, limit_tokens).content
    assert shown is not None
    assert shown[0] == HEADER
    return list(shown[1:])


def input_text(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


def test_every_kind_of_content_is_a_part() -> None:
    link = {"type": "resource_link", "uri": "file:///é", "name": "é"}
    assert parts(
        {"type": "text", "text": "hi"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        link,
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
    ) == [
        input_text("hi"),
        {
            "type": "input_image",
            "image_url": f"data:image/png;base64,{PNG}",
            "detail": "original",
        },
        input_text('{"type":"resource_link","uri":"file:///é","name":"é"}'),
        input_text('{"type":"audio","data":"AA==","mimeType":"audio/wav"}'),
        input_text('{"type":"resource","resource":{"uri":"a:b","text":"t"}}'),
    ]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": {"type": "text", "text": "x"}}, "x"),
        ({"content": "x"}, "x"),
        ({"content": 7}, "7"),
        ({"content": True}, "true"),
        ({"content": None, "toolResult": {"a": 1}}, '{"toolResult":{"a":1}}'),
        ({"toolResult": "x"}, '{"toolResult":"x"}'),
        ({"content": {"a": 1}, "isError": True}, '{"a":1}'),
    ],
)
def test_content_that_is_no_list_is_shown_all_the_same(
    result: dict[str, Any], text: str
) -> None:
    shown = output(result)
    assert shown.content == (HEADER, input_text(text))
    assert shown.success is not result.get("isError", False)
    assert len(item_result(result)["content"]) == 1


@pytest.mark.parametrize(
    "result", [{}, {"content": None}, {"content": []}, {"_meta": {"a": 1}}]
)
def test_a_result_without_content_is_empty(result: dict[str, Any]) -> None:
    assert output(result).content == (HEADER,)
    assert item_result(result)["content"] == []


def test_structured_content_is_given_instead_as_text() -> None:
    result = {
        "content": [{"type": "text", "text": "x"}],
        "structuredContent": {"a": [1, None]},
    }
    assert output(result) == ToolOutput(
        'Wall time: 1.5000 seconds\nOutput:\n{"a":[1,null]}', success=True
    )


def test_an_error_of_the_tool_has_a_code() -> None:
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert output(result) == ToolOutput(
        "", content=(HEADER, input_text("no")), success=False, error_code="ToolFailed"
    )


def test_an_image_that_services_refuse_is_left_out() -> None:
    damaged = [base64.b64encode(data).decode() for data in images.DAMAGED.values()]
    svg = base64.b64encode(b"<svg/>").decode()
    for data in (*damaged, svg, "%%%", "QQ", PNG + "A" * (21 << 20)):
        (part,) = parts({"type": "image", "data": data, "mimeType": "image/png"})
        assert part["type"] == "input_text"
        assert part["text"].startswith(
            "[an image was left out: unable to process image: "
        )


@pytest.mark.parametrize(
    "before",
    ["data:image/png;base64,", "data:;base64,", " DATA:image/png;name=a;BASE64,"],
)
def test_the_data_of_an_image_may_be_a_data_url(before: str) -> None:
    (part,) = parts({"type": "image", "data": before + PNG, "mimeType": "image/png"})
    assert part["image_url"] == f"data:image/png;base64,{PNG}"


@pytest.mark.parametrize(
    "entry", [{"data": None}, {}, {"data": 7}, {"data": ["a"]}, {"data": {}}]
)
def test_an_image_without_data_is_told_as_that(entry: dict[str, Any]) -> None:
    (part,) = parts({"type": "image", **entry})
    assert part["text"].endswith("unable to process image: it has no data]")


def test_text_is_cut_to_the_limit_and_the_parts_after_it_are_counted() -> None:
    text = {"type": "text", "text": "word " * 1000}
    shown = parts(text, text, text, limit_tokens=1500)
    assert shown[0] == input_text("word " * 1000)
    assert shown[1]["text"].startswith(
        "Warning: truncated output (original token count: 1250)"
    )
    assert len(shown[1]["text"]) < 1200
    assert shown[2] == input_text("[1 more parts left out]")
    assert len(parts(*[{"type": "text", "text": ""}] * 5000)) == 101


def test_nonsense_is_shown_as_it_is() -> None:
    assert parts(None, {"type": "text"}, "x") == [
        input_text("null"),
        input_text('{"type":"text"}'),
        input_text('"x"'),
    ]
    assert output({"content": 3}).content == (HEADER, input_text("3"))
    assert output({"content": "bare"}).content == (HEADER, input_text("bare"))
    assert parts({"type": "text", "text": "\ud800"}) == [input_text("\ufffd")]


def test_an_item_holds_the_result_up_to_a_megabyte() -> None:
    content = [{"type": "text", "text": "hi"}]
    assert item_result({"content": content, "_meta": {"a": 1}, "isError": False}) == {
        "content": content,
        "structured_content": None,
        "_meta": {"a": 1},
    }
    long = item_result({"content": [{"type": "text", "text": "x" * 5_000_000}]})
    assert MAX_ITEM_BYTES < len(json.dumps(long)) < MAX_ITEM_BYTES + 1000
