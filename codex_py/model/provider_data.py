"""Data of items that only their provider can use: signatures, encrypted reasoning, server ids.

A session may change its provider. The field `provider_data` names the provider of an item in two
cases: it is not the thread's first provider, or the item has data without a field in the Responses
API, such as the signature of a thinking block. The field is in the session file, and is never sent.
"""

import json
import re
from collections.abc import Sequence
from operator import is_
from typing import Any, Final, cast

from codex_py.model.call_names import CallIds, legal_name
from codex_py.model.freeform import wrapped_item
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import JsonObject
from codex_py.protocol.messages import EncodedItem, encode_json

FIELD: Final = "provider_data"
_FIELD_BYTES = b'"provider_data"'
_NO_IMAGE: Final = {
    "type": "input_text",
    "text": "(an image was left out: this model takes text only)",
}
# A tool name that is empty, too long, or has other characters than servers accept.
_ODD_NAME: Final = re.compile(rb'"name":"(?:"|[^"]{129}|[^"]*[^"a-zA-Z0-9_-])')
_ONLY_FOR_MAKER = frozenset(
    {"reasoning", "web_search_call", "compaction", "compaction_summary"}
)
"""The types of items that other providers do not understand."""


@frozen
class Maker:
    """A provider as the source of a thread's items."""

    provider: str = ""
    home: str = ""
    """The thread's first provider, which made all items without `provider_data`."""

    @property
    def is_home(self) -> bool:
        return self.home == self.provider

    def marked(
        self,
        item: JsonObject,
        model: str = "",
        **data: Any,
    ) -> JsonObject:
        """Mark an item as this provider's, with data that only `model` can use."""
        if data:
            field = {"provider": self.provider, "model": model, **data}
            return {**item, FIELD: field}
        if self.is_home:
            return item
        return {**item, FIELD: {"provider": self.provider}}

    def own_data(
        self,
        item: JsonObject,
        model: str | None = None,
    ) -> JsonObject | None:
        """The data of an item if this provider and model made it, else None.

        `model`: None for any model.
        """
        field = item.get(FIELD)
        if not isinstance(field, dict):
            return {} if self.is_home else None
        data = cast("JsonObject", field)
        if data.get("provider") != self.provider:
            return None
        if model is not None and data.get("model", model) != model:
            return None
        return data


class OwnItems:
    """Prepares a history for a provider, in the Responses format.

    Items from other providers lose the data that only their maker can use.
    """

    def __init__(
        self, maker: Maker, *, functions_only: bool, tool_ids: str = "verbatim"
    ) -> None:
        """
        Args:
            functions_only: calls of freeform tools become calls of functions.
            tool_ids: the ids of calls that the provider accepts, see `Profile`.
        """
        self._maker = maker
        self._functions_only = functions_only
        self._tool_ids = tool_ids
        self._clear_ids()
        self._images = True
        self._history = GrowingHistory()
        self._cleaned: list[EncodedItem] = []

    def of(
        self, items: Sequence[EncodedItem], *, images: bool = True
    ) -> Sequence[EncodedItem]:
        """The prepared items of a history. Without `images`, a note replaces each image."""
        is_same, new = self._history.grow(items, images)
        if not is_same:
            self._cleaned = []
            self._images = images
            self._clear_ids()
        for item in new:
            cleaned = self._clean(item)
            if cleaned is not None:
                self._cleaned.append(cleaned)
        return self._cleaned

    def _clean(self, item: EncodedItem) -> EncodedItem | None:
        """The item as the provider takes it; None if only its maker can use it.

        Most items are copied without being parsed.
        """
        is_freeform = self._functions_only and b'"custom_tool_call' in item
        has_image = not self._images and b'"input_image"' in item
        needs_id = self._tool_ids != "verbatim" and b'"call_id"' in item
        is_odd = needs_id or _has_odd_name(item)
        is_own = self._maker.is_home and _FIELD_BYTES not in item
        if is_own and not (is_freeform or has_image or is_odd):
            return item
        data: JsonObject = json.loads(item)
        if is_odd:
            self._fit_call(data)
        if has_image:
            for name in ("content", "output"):
                if isinstance(data.get(name), list):
                    data[name] = without_images(data[name])
        if is_freeform:
            data = wrapped_item(data)
        if self._maker.own_data(data) is None:
            return _without_maker(data)
        data.pop(FIELD, None)
        return EncodedItem(encode_json(data))

    def _clear_ids(self) -> None:
        self._ids = CallIds(self._tool_ids)
        self._fitting: dict[str, str] = {}
        """Maps the ids in the history to the ids that are sent."""

    def _fit_call(self, data: JsonObject) -> None:
        """Give a call or an output a name and an id that the provider accepts."""
        is_call = "name" in data
        if is_call:
            data["name"] = legal_name(str(data["name"]))
        call_id = data.get("call_id")
        if isinstance(call_id, str) and self._tool_ids != "verbatim":
            if is_call:
                self._fitting[call_id] = self._ids.fitting(call_id)
            data["call_id"] = self._fitting.get(call_id, call_id)


def _has_odd_name(item: EncodedItem) -> bool:
    """True for a call with a tool name that no server accepts in a history."""
    may_be_call = b'_call"' in item
    if not may_be_call or _ODD_NAME.search(item) is None:
        return False
    return json.loads(item).get("type") in {"function_call", "custom_tool_call"}


def without_images(parts: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """The parts of a message or an output, with a note in the place of each image."""
    return list(map(_without_image, parts))


def _without_image(part: JsonObject) -> JsonObject:
    if part.get("type") == "input_image":
        return _NO_IMAGE
    return part


def without_maker(item: EncodedItem) -> EncodedItem | None:
    """The item in a form that any provider accepts; None if only its maker can use it."""
    return _without_maker(json.loads(item))


def _without_maker(data: JsonObject) -> EncodedItem | None:
    """See `without_maker`."""
    if data.get("type") in _ONLY_FOR_MAKER:
        return None
    names = [name for name in data if name not in {FIELD, "id"}]
    shared = {name: data[name] for name in names}
    return EncodedItem(encode_json(shared))


class GrowingHistory:
    """Finds the new items of a growing history, so that only these have to be translated."""

    def __init__(self) -> None:
        self._seen: list[EncodedItem] = []
        self._manner: object = None

    def grow(
        self, items: Sequence[EncodedItem], manner: object = None
    ) -> tuple[bool, Sequence[EncodedItem]]:
        """Returns True and the new items if the last history has grown, else False and all items.

        `manner`: the options of the translation; a change of them makes it another history.
        """
        seen = self._seen
        was = self._manner
        self._seen = list(items)
        self._manner = manner
        if manner != was or len(items) < len(seen):
            return False, items
        # The items are compared by identity: a history keeps its items while it grows.
        begins_as_seen = all(map(is_, seen, items))
        if not begins_as_seen:
            return False, items
        return True, items[len(seen) :]
