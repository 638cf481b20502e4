"""Reads a session file: the items of the history, ready to be sent again."""

from dataclasses import dataclass
from pathlib import Path

from codex_py.protocol import response_order
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.stream import Usage
from codex_py.rollout.entries import Entry, compacted, context_of, paired, without_last_turns
from codex_py.rollout.lines import thread_lines
from codex_py.rollout.records import SessionMeta, read_meta, read_token_count


@dataclass(frozen=True, slots=True)
class StoredSession:
    """The contents of a session file."""

    path: Path
    meta: SessionMeta
    items: list[EncodedItem]
    """Each call has its output. Without the base prompt, which is `meta.base_instructions`."""
    usage: Usage
    """Of the whole thread."""
    last_usage: Usage
    """Of the last response: how full the context window was."""
    model: str | None
    """Of the last turn."""
    context: dict[str, str]
    """The last text of each kind of context, by its opening (`CONTEXT_OPENINGS`)."""
    damaged_lines: int
    """The number of lines that were skipped as unreadable, such as one cut off by a kill."""

    @property
    def thread_id(self) -> str:
        return self.meta.id


def read_session(path: Path) -> StoredSession:
    """Read a whole session.

    Items keep their bytes from the file. Lines of unknown type are skipped.

    Raises:
        SessionError: the file cannot be read, does not begin with session metadata, or continues a
            session whose file is missing.
    """
    meta = read_meta(path)
    entries: list[Entry] = []
    usage = last_usage = Usage()
    model: str | None = None
    damaged_lines = 0
    for line in thread_lines(path):
        if line is None:
            damaged_lines += 1
            continue
        match line.kind, line.payload:
            case "response_item", payload:
                entries.append(Entry.of(payload, line.encoded, line.place))
            case "event_msg", {"type": response_order.COMPLETED} as payload:
                entries.append(Entry.of(payload, None, line.place))
            case "event_msg", {"type": "token_count"} as payload:
                usage, last_usage = read_token_count(payload) or (usage, last_usage)
            case "event_msg", {"type": "thread_rolled_back", "num_turns": turns}:
                entries = without_last_turns(entries, turns)
                # The fill of the context window is no longer known, unless a `token_count` follows.
                last_usage = Usage()
            case "turn_context", {"model": str(name)}:
                model = name
            case "compacted", payload:
                entries = compacted(entries, payload)
                last_usage = Usage()
            case _:
                pass
    return StoredSession(
        path=path,
        meta=meta,
        items=paired(entries),
        usage=usage,
        last_usage=last_usage,
        model=model,
        context=context_of(entries),
        damaged_lines=damaged_lines,
    )
