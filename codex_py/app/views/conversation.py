"""A conversation with its facts, for exports and for slash commands of extensions."""

from collections.abc import Sequence
from pathlib import Path

from codex_py.app.thread import thread_items
from codex_py.protocol.event_items import ThreadItem, UserMessage
from codex_py.protocol.frozen import frozen
from codex_py.protocol.stream import Usage
from codex_py.rollout.details import read_details
from codex_py.rollout.index import thread_names
from codex_py.rollout.reader import read_conversation
from codex_py.rollout.records import home_of, read_meta

_MAX_TITLE_CHARS = 80


@frozen(kw_only=True)
class Conversation:
    """What was said in a session, with the facts about it."""

    thread_id: str
    name: str | None
    cwd: str
    model: str | None
    provider: str | None
    usage: Usage
    items: Sequence[ThreadItem]
    began: str = ""
    """The start in UTC, RFC 3339; empty if unknown."""

    @property
    def title(self) -> str:
        """The name of the session, or else the first line of the first prompt; shortened."""
        text = self.name or self._first_line()
        if len(text) <= _MAX_TITLE_CHARS:
            return text
        return f"{text[: _MAX_TITLE_CHARS - 1]}…"

    def _first_line(self) -> str:
        for item in self.items:
            if isinstance(item, UserMessage):
                line, _, _ = item.text.strip().partition("\n")
                return line
        return ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The known facts for the head of the document, as names and values."""
        began = ""
        if self.began:
            minute = self.began[:16].replace("T", " ")
            began = f"{minute} UTC"
        provider_and_model = filter(None, (self.provider, self.model))
        tokens = ""
        if self.usage.total_tokens:
            tokens = f"{self.usage.input_tokens:,} in, {self.usage.output_tokens:,} out"
        rows = [
            ("Session", self.thread_id),
            ("Began", began),
            ("Model", "/".join(provider_and_model)),
            ("Directory", self.cwd),
            ("Tokens", tokens),
        ]
        return [(name, value) for name, value in rows if value]


def saved_conversation(path: Path) -> Conversation:
    """Read the conversation of a session file.

    Raises a `SessionError` if the file cannot be read.
    """
    meta = read_meta(path)
    details = read_details(path)
    return Conversation(
        thread_id=meta.id,
        name=thread_names(home_of(path)).get(meta.id),
        cwd=meta.cwd,
        model=details.settings["model"],
        provider=meta.model_provider,
        began=meta.timestamp,
        usage=details.usage,
        items=thread_items(read_conversation(path)),
    )
