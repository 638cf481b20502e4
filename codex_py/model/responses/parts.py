"""The texts that a response is streamed in: parts of messages and of reasoning, arguments, freeform input."""

from io import StringIO
from typing import cast

from codex_py.protocol.json_fields import JsonObject, objects, well_formed

_TEXT_PARTS = frozenset({"output_text", "refusal", "summary_text", "reasoning_text", "text"})


class Text:
    """Text that is announced, comes in pieces, or is given whole at the end; often all three."""

    __slots__ = ("_pieces", "_whole", "announced")

    def __init__(self, announced: str = "") -> None:
        self.announced = announced
        # Deltas can be single characters: a list of them takes twenty times the memory of the text.
        self._pieces = StringIO()
        self._whole: str | None = None

    @property
    def is_whole(self) -> bool:
        return self._whole is not None

    def append(self, delta: str) -> None:
        if self._whole is None:
            self._pieces.write(delta)

    def finish(self, text: str) -> None:
        """Take the whole text. An empty one says nothing: some servers leave it out at the end."""
        if text:
            self._whole = text
            self._pieces = StringIO()

    @property
    def streamed(self) -> str:
        """What came after the announcement. Surrogates are judged here: a pair can span two deltas."""
        return self._whole or well_formed(self._pieces.getvalue())

    @property
    def value(self) -> str:
        streamed = self.streamed
        if self._whole is not None or streamed.startswith(self.announced):
            # Some servers announce the start of a text and then stream it from its start.
            return streamed
        return self.announced + streamed


class Part:
    """One part of a message's content or of a reasoning item."""

    __slots__ = ("fields", "index", "kind", "text")

    def __init__(self, index: int, kind: str) -> None:
        self.index = index
        self.kind = kind
        self.fields: JsonObject = {}
        self.text = Text()

    def announce(self, fields: JsonObject) -> None:
        self.fields.update(fields)
        self.text.announced = part_text(fields)

    def finish(self, fields: JsonObject) -> None:
        self.fields.update(fields)
        self.text.finish(part_text(fields))

    def annotate(self, annotation: object) -> None:
        known = self.fields.setdefault("annotations", [])
        if isinstance(known, list):
            cast("list[object]", known).append(annotation)

    def data(self) -> JsonObject:
        key = "refusal" if self.kind == "refusal" else "text"
        if self.kind not in _TEXT_PARTS:
            return self.fields
        return {**self.fields, "type": self.kind, key: self.text.value}


def part_kind(fields: JsonObject) -> str:
    kind = fields.get("type")
    return kind if isinstance(kind, str) else "output_text"


def part_text(fields: JsonObject) -> str:
    text = fields.get("refusal") or fields.get("text")
    return text if isinstance(text, str) else ""


def parts_data(parts: dict[int, Part]) -> list[JsonObject]:
    """The parts in order, less those that say nothing."""
    data = [parts[index].data() for index in sorted(parts)]
    return [fields for fields in data if not is_empty([fields])]


def is_empty(field: object) -> bool:
    """Whether a field of an item says nothing: no more do parts without text."""
    if isinstance(field, list):
        values = cast("list[object]", field)
        fields = objects(values)
        return len(fields) == len(values) and all(
            part_kind(part) in _TEXT_PARTS and not part_text(part) for part in fields
        )
    return field is None or field == ""


def text_of(field: object) -> str:
    """The text of a field of an item: its own, or that of its parts."""
    if isinstance(field, list):
        return "".join(part_text(part) for part in objects(cast("list[object]", field)))
    return field if isinstance(field, str) else ""
