"""Images that a server refuses, from outside.

Tests `app/features/image_refusals.py`.
"""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from codex_py.core.session import Session
from codex_py.testing import (
    RecordedRequest,
    Reply,
    ev_completed,
    ev_function_call,
    ev_message,
)
from codex_py.testing.events import ev_created
from tests.support.images import DAMAGED, GIF, JPEG, PNG, png
from tests.support.program import Workplace
from tests.support.wires import AnyWire, images

DONE = [ev_created(), *ev_message("done"), ev_completed()]
ALL = ("responses", "functions", "chat", "anthropic", "text")

VALID = (
    "The image data you provided does not represent a valid image. Please check your input",
    "messages.3.content.0.image.source.base64.data: Could not process image",
    "Invalid PNG image.",
    "Base64 string of provided image cannot be decoded.",
    "image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
    "failed to process image",
    "Invalid 'input[3].content[1].image_url': string too long. Expected a string with maximum length 20971520",
)
NONE = (
    (400, "At most 0 image(s) may be provided in one prompt."),
    (500, "image input is not supported - hint: you may need to provide the mmproj"),
    (404, "No endpoints found that support image input"),
    (
        422,
        "Failed to deserialize: messages[3]: unknown variant `image_url`, expected `text`",
    ),
    (400, "this model does not support image input"),
)


TOO_LARGE = (
    "image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
    "Payload Too Large: the image is larger than the gateway allows",
    "messages.3.content.1.image.source.base64: image is too large",
    "Too many images in the request: 2 > 1",
    "The dimensions of input_image exceed 2000 pixels",
    "Request body too large: reduce the number of images or the length of the conversation",
    "Only PNG and JPEG files below 4 MB are accepted",
)
"""The words of a refusal with status 413 that are about an image."""


@pytest.fixture
def place(place: Workplace) -> Workplace:
    for name, data in {"one.png": PNG, "two.gif": GIF, "three.jpg": JPEG}.items():
        (place.cwd / name).write_bytes(data)
    return place


def looks(name: str, call_id: str = "c1") -> list[Any]:
    calls = ev_function_call(call_id, "view_image", {"path": name})
    return [ev_created(), *calls, ev_completed()]


def refuses(
    data: bytes, message: str, status: int = 400
) -> Callable[[RecordedRequest], Any]:
    """A server that does not take this image."""
    encoded = base64.b64encode(data)

    def answer(request: RecordedRequest) -> Any:
        return reply(message, status) if encoded in request.raw else DONE

    return answer


def reply(
    message: str, status: int = 400, kind: str = "invalid_request_error"
) -> Reply:
    error = {"message": message, "type": kind}
    return Reply(status=status, body=json.dumps({"error": error}).encode())


def compactions(wires: AnyWire) -> int:
    items = [event["item"] for event in wires.events if "item" in event]
    return sum(item["type"] == "context_compaction" for item in items)


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize("message", VALID)
def test_a_refused_image_costs_no_turn(
    place: Workplace, wire: str, message: str
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn(
            "look", images=[place.cwd / "one.png", place.cwd / "two.gif"]
        )
        await session.run_turn("again")

    answer = refuses(GIF, message)
    with AnyWire(place, check_prefix=False) as wires:
        wires.session(wire, work, answer, answer, answer)
        assert [e["type"] for e in wires.events].count("turn.completed") == 2
        assert len(wires.warnings) == 1
        assert len(wires.requests) == 3


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize("message", TOO_LARGE)
def test_an_image_that_is_too_large_for_the_server_costs_no_compaction(
    place: Workplace, wire: str, message: str
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("go " * 3000)
        await session.run_turn("look", images=[place.cwd / "two.gif"])

    answer = refuses(GIF, message, 413)
    with AnyWire(place, check_prefix=False) as wires:
        wires.session(wire, work, DONE, answer, answer)
        assert [e["type"] for e in wires.events].count("turn.completed") == 2
        assert [images(request) for request in wires.requests] == [0, 1, 0]
        assert compactions(wires) == 0
        assert len(wires.warnings) == 1


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize(
    "message",
    ["Payload Too Large", "Request exceeds the maximum size of 32 MB", "", "too big"],
)
def test_a_request_that_is_too_large_is_compacted_with_its_images(
    place: Workplace, wire: str, message: str
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("go " * 3000)
        await session.run_turn("look", images=[place.cwd / "two.gif"])

    too_large = reply(message, 413, "request_too_large")
    with AnyWire(place, check_prefix=False) as wires:
        wires.session(wire, work, DONE, too_large, DONE, DONE)
        assert wires.last["type"] == "turn.completed"
        assert compactions(wires) == 2  # its start and its end
        assert [images(request) for request in wires.requests[:3]] == [0, 1, 1]


def test_a_request_that_is_too_large_without_its_images_too_is_compacted(
    place: Workplace,
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("go " * 3000)
        await session.run_turn("look", images=[place.cwd / "two.gif"])

    too_large = reply(TOO_LARGE[5], 413)
    with AnyWire(place, check_prefix=False) as wires:
        wires.session("chat", work, DONE, too_large, too_large, DONE, DONE)
        assert wires.last["type"] == "turn.completed"
        assert [images(request) for request in wires.requests[:4]] == [0, 1, 0, 0]
        assert compactions(wires) == 2


def test_a_summary_is_asked_for_without_the_image_that_is_refused(
    place: Workplace,
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("go " * 3000, images=[place.cwd / "two.gif"])
        await session.compact()

    answer = refuses(GIF, TOO_LARGE[0], 413)
    with AnyWire(place, check_prefix=False) as wires:
        wires.session("chat", work, DONE, answer, answer)
        assert [images(request) for request in wires.requests] == [1, 1, 0]
        kept = b"go " * 3000
        assert all(kept in request.raw for request in wires.requests)


def test_the_newest_image_goes_first_and_then_all(place: Workplace) -> None:
    async def work(session: Session) -> None:
        for name in ("one.png", "two.gif", "three.jpg"):
            await session.run_turn("look", images=[place.cwd / name])

    first = refuses(PNG, VALID[0])
    with AnyWire(place, check_prefix=False) as wires:
        wires.session("chat", work, DONE, DONE, first, first, first)
        assert [images(request) for request in wires.requests] == [1, 2, 3, 2, 0]
        assert wires.last["type"] == "turn.completed"


def test_a_server_that_goes_on_refusing_images_ends_the_turn(place: Workplace) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("look", images=[place.cwd / "one.png"])

    with AnyWire(place, check_prefix=False) as wires:
        wires.session("chat", work, reply(VALID[0]), reply(VALID[0]))
        assert wires.last["type"] == "turn.failed"
        assert [images(request) for request in wires.requests] == [1, 0]


@pytest.mark.parametrize("wire", ALL)
@pytest.mark.parametrize(("status", "message"), NONE)
def test_a_model_without_images_is_remembered(
    place: Workplace, wire: str, status: int, message: str
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("look", images=[place.cwd / "one.png"])
        await session.run_turn("look", images=[place.cwd / "two.gif"])

    with AnyWire(place, retries=3, check_prefix=False) as wires:
        wires.session(wire, work, reply(message, status), DONE, DONE)
        assert [images(request) for request in wires.requests] == [1, 0, 0]
        assert len(wires.warnings) == 1
        assert "takes no images" in wires.warnings[0]


def test_more_images_than_the_server_takes_lose_the_oldest(place: Workplace) -> None:
    async def work(session: Session) -> None:
        for name in ("one.png", "two.gif", "three.jpg"):
            await session.run_turn("look", images=[place.cwd / name])

    many = reply("At most 2 image(s) may be provided in one prompt.")
    with AnyWire(place, check_prefix=False) as wires:
        wires.session("chat", work, DONE, DONE, many, DONE)
        last = wires.requests[-1].raw
        assert base64.b64encode(PNG) not in last
        assert base64.b64encode(JPEG) in last


def test_images_beyond_a_side_that_the_server_names_go_first(place: Workplace) -> None:
    (place.cwd / "wide.png").write_bytes(png(1500, 10))

    async def work(session: Session) -> None:
        await session.run_turn("look", images=[place.cwd / "wide.png"])
        await session.run_turn("look", images=[place.cwd / "one.png"])

    size = "At least one of the image dimensions exceed max allowed size: 1000 pixels"
    with AnyWire(place, check_prefix=False) as wires:
        wires.session("anthropic", work, DONE, reply(size), DONE)
        last = wires.requests[-1].raw
        assert base64.b64encode(PNG) in last
        assert images(wires.requests[-1]) == 1


@pytest.mark.parametrize("wire", ALL)
def test_a_session_with_a_damaged_image_on_file_is_resumed(
    place: Workplace, wire: str
) -> None:
    damaged = DAMAGED["PNG cut after 40 bytes"]
    with AnyWire(place, check_prefix=False) as wires:
        thread = wires.prompt(wire, "go", looks("one.png"), DONE)
        (path,) = place.rollouts()
        good, bad = base64.b64encode(PNG), base64.b64encode(damaged)
        path.write_bytes(path.read_bytes().replace(good, bad))
        answer = refuses(damaged, VALID[0])
        wires.prompt(wire, "again", answer, answer, resume=thread)
        assert wires.last["type"] == "turn.completed"
        assert [images(request) for request in wires.requests[-2:]] == [1, 0]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "too many images per minute"),
        (401, "the key is not valid for image input"),
        (400, "temperature is not supported"),
        (503, "the image service is down"),
    ],
)
def test_other_failures_cost_no_image(
    place: Workplace, status: int, message: str
) -> None:
    async def work(session: Session) -> None:
        await session.run_turn("look", images=[place.cwd / "one.png"])

    with AnyWire(place, check_prefix=False) as wires:
        wires.session("chat", work, reply(message, status))
        assert [images(request) for request in wires.requests] == [1]
        assert wires.last["type"] == "turn.failed"


def test_a_damaged_image_is_never_sent(place: Workplace) -> None:
    (place.cwd / "cut.png").write_bytes(PNG[:40])

    async def work(session: Session) -> None:
        await session.run_turn("look", images=[place.cwd / "cut.png"])

    with AnyWire(place) as wires:
        wires.session("responses", work, looks("cut.png"), DONE)
        assert [images(request) for request in wires.requests] == [0, 0]
        assert "unable to process image" in wires.requests[1].raw.decode()
