"""Answers the methods that read the history of a thread page by page."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from codex_py.app.json_rpc import INVALID_PARAMS, INVALID_REQUEST, RpcError
from codex_py.frontends.app_server.methods import MethodGroup, serves
from codex_py.frontends.app_server.threads import history
from codex_py.frontends.app_server.threads.thread_params import (
    ItemAnchor,
    ItemsList,
    TurnsList,
)
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.frozen import frozen
from codex_py.rollout.index import find_session

_MAX_PAGE: Final = 100
"""Number of turns or items in a page, whatever the client asks for."""
_NO_ITEM: Final = (
    "cursor.itemId does not identify an item in the requested history scope"
)


@frozen
class Place:
    """The place of a turn in a history, or of an item in it."""

    turn_id: str
    item_id: str = ""
    """Empty for the place of a turn."""


@frozen
class Cursor:
    """The place from which a page goes on."""

    place: Place
    is_included: bool
    """True if the page begins with this place, and not behind it."""

    def text(self) -> str:
        """The cursor for the client, to whom it means nothing."""
        fields = {**asdict(self.place), "is_included": self.is_included}
        return json.dumps(fields)


class HistoryPageMethods(MethodGroup):
    """Answers `thread/turns/list` and `thread/items/list`."""

    @serves("thread/turns/list", TurnsList)
    async def turns(self, asked: TurnsList) -> Fields:
        """List turns. A page has all turns that there are so far, the running one too."""
        turns = await self._turns(asked.thread_id, "thread/turns/list")
        by_place = {Place(turn["id"]): turn for turn in turns}
        cursor = None
        if asked.cursor is not None:
            cursor = _read_cursor(asked.cursor, of_items=False)
        page = _page(
            list(by_place),
            cursor,
            asked.limit,
            is_descending=asked.sort_direction == "desc",
        )
        shown = [_viewed(by_place[place], asked.items_view) for place in page.places]
        return page.answer(shown)

    @serves("thread/items/list", ItemsList)
    async def items(self, asked: ItemsList) -> Fields:
        """List the items of a thread, or of one turn."""
        cursor = _cursor_of_items(asked)
        turns = await self._turns(asked.thread_id, "thread/items/list")
        entries: dict[Place, Fields] = {}
        for turn in turns:
            turn_id = turn["id"]
            if asked.turn_id is not None and asked.turn_id != turn_id:
                continue
            for item in turn["items"]:
                entries[Place(turn_id, item["id"])] = {"turnId": turn_id, "item": item}
        if isinstance(asked.cursor, ItemAnchor):
            assert cursor is not None
            if cursor.place not in entries:
                raise RpcError(INVALID_PARAMS, _NO_ITEM)
        page = _page(
            list(entries),
            cursor,
            asked.limit,
            is_descending=asked.sort_direction == "desc",
        )
        return page.answer([entries[place] for place in page.places])

    async def _turns(self, thread_id: str, method: str) -> Sequence[Fields]:
        """Read the turns of a thread with all of their items, oldest first.

        Raises:
            RpcError: there is no such thread, or it has no file to read.
        """
        thread = self.threads.get(thread_id)
        path = None
        running = None
        if thread is not None:
            if thread.options.ephemeral:
                text = f"ephemeral threads do not support {method}"
                raise RpcError(INVALID_REQUEST, text)
            thread_id = thread.thread_id
            running = thread.feed and thread.feed.turn_id
        if thread is not None and thread.is_open:
            path = thread.session.session_file
            if thread.session.is_untouched:
                text = (
                    f"thread {thread_id} is not materialized yet;"
                    f" {method} is unavailable before first user message"
                )
                raise RpcError(INVALID_REQUEST, text)
        if path is None:
            path = find_session(self.server.home, thread_id)
        if path is None:
            raise RpcError(INVALID_REQUEST, f"thread not loaded: {thread_id}")
        return await asyncio.to_thread(history.read_turns, path, running)


def last_cursors(turns: Sequence[Fields]) -> Fields:
    """The cursors from which a client reads a history backwards, the last turn and item included.

    `turns`: the turns with all of their items, oldest first.
    """
    turn_cursor = None
    item_cursor = None
    for turn in turns:
        turn_cursor = Cursor(Place(turn["id"]), is_included=True).text()
        for item in turn["items"]:
            place = Place(turn["id"], item["id"])
            item_cursor = Cursor(place, is_included=True).text()
    return {"turnsBackwardsCursor": turn_cursor, "itemsBackwardsCursor": item_cursor}


@frozen
class _Page:
    """A part of a history, in the order that the client asks for."""

    places: Sequence[Place]
    is_last: bool

    def answer(self, shown: Sequence[Fields]) -> Fields:
        """Make the answer to the client. `shown`: what stands at the places."""
        next_cursor = None
        backwards_cursor = None
        if self.places:
            backwards_cursor = Cursor(self.places[0], is_included=True).text()
        if not self.is_last:
            next_cursor = Cursor(self.places[-1], is_included=False).text()
        return {
            "data": shown,
            "nextCursor": next_cursor,
            "backwardsCursor": backwards_cursor,
        }


def _page(
    places: Sequence[Place],
    cursor: Cursor | None,
    limit: int,
    *,
    is_descending: bool,
) -> _Page:
    """Find the page behind a cursor. `places`: all of them, oldest first.

    Raises:
        RpcError: the place of the cursor is not in the history any more.
    """
    if is_descending:
        places = places[::-1]
    start = 0
    if cursor is not None:
        if cursor.place not in places:
            raise RpcError(INVALID_REQUEST, f"invalid cursor: {cursor.text()}")
        start = places.index(cursor.place)
        if not cursor.is_included:
            start += 1
    # As in Codex, a page is only empty if nothing is left.
    size = min(max(1, limit), _MAX_PAGE)
    end = start + size
    return _Page(places[start:end], is_last=end >= len(places))


def _cursor_of_items(asked: ItemsList) -> Cursor | None:
    """The cursor of a request for items."""
    match asked.cursor:
        case None:
            return None
        case str(text):
            return _read_cursor(text, of_items=True)
        case ItemAnchor(item_id=item_id):
            if not asked.turn_id:
                text = "turnId is required when cursor is an item anchor"
                raise RpcError(INVALID_PARAMS, text)
            return Cursor(Place(asked.turn_id, item_id), is_included=False)


def _read_cursor(text: str, *, of_items: bool) -> Cursor:
    """Read a cursor of a page of turns, or of items. Raises an `RpcError` if it is none."""
    with suppress(ValueError, RecursionError):
        match json.loads(text):
            case {
                "turn_id": str(turn_id),
                "item_id": str(item_id),
                "is_included": bool(is_included),
            } if bool(item_id) == of_items:
                return Cursor(Place(turn_id, item_id), is_included)
            case _:
                pass
    raise RpcError(INVALID_REQUEST, f"invalid cursor: {text}")


def _viewed(turn: Fields, view: str) -> Fields:
    """A turn with as many of its items as the client wants: `notLoaded`, `summary` or `full`."""
    if view == "full":
        return turn
    items: list[Fields] = []
    if view == "summary":
        prompts = [item for item in turn["items"] if item["type"] == "userMessage"]
        answers = [item for item in turn["items"] if item["type"] == "agentMessage"]
        items = [*prompts[:1], *answers[-1:]]
    return {**turn, "items": items, "itemsView": view}
