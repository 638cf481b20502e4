"""A conversation as one JSON document; docs/sessions.md describes it."""

import json
from collections.abc import Iterator

from codex_py import __version__
from codex_py.frontends.export.document import Document, Shortener
from codex_py.protocol.event_data import item_data, plain_data


def json_document(document: Document, shortener: Shortener) -> Iterator[str]:
    head = {
        "format": "codex-py-conversation",
        "format_version": 1,
        "written_by": f"codex-py {__version__}",
        "thread_id": document.thread_id,
        "name": document.name,
        "cwd": document.cwd,
        "model": document.model,
        "model_provider": document.provider,
        "began": document.began or None,
        "usage": plain_data(document.usage),
    }
    yield json.dumps(head, indent=2).removesuffix("\n}")
    yield ',\n  "items": ['
    separator = "\n    "
    for item in document.items:
        data = item_data(item)
        if item.type in {"command_execution", "file_change", "mcp_tool_call"}:
            data = shortener.value(data)
        yield separator + json.dumps(data)
        separator = ",\n    "
    yield f'\n  ],\n  "shortened": {shortener.count}\n}}\n'
