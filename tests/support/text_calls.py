"""Calls in the text of an answer, as a model writes them that cannot call tools.

The format is described in `instructions/tools/text_format.md`. It has no ids: those of the script are lost. The tag of
the calls is the one that the request announces.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from codex_py.testing import RecordedRequest, Reply
from codex_py.testing.events import ev_message, is_responses_event
from codex_py.testing.rendering.base import called_name, content
from codex_py.testing.reply import Part
from codex_py.testing.server import Script

_TAG = re.compile(rb"<(tool_[0-9a-f]{8}) name=")
_PIECES = 3
"""How many deltas a call comes in, so that what reads it sees half of one."""


def text_tag(request: RecordedRequest) -> str:
    """The tag that the instructions ask calls within text to have; `tool` if there is none."""
    found = _TAG.search(request.raw)
    return found[1].decode() if found is not None else "tool"


def by_model_without_tools(script: Script) -> Script:
    """The reply as a model gives it that cannot call tools."""

    def reply(request: RecordedRequest) -> Script:
        said = script
        while callable(said):
            said = said(request)
        if isinstance(said, bytes):
            return said
        # The scripts of these tests have events only.
        events = cast("Sequence[Part]", said)
        whole = said if isinstance(said, Reply) else Reply(events=events)
        return replace(
            whole, events=with_calls_as_text(whole.events, text_tag(request))
        )

    return reply


def with_calls_as_text(parts: Sequence[Part], tag: str) -> list[Part]:
    """The parts of a reply with a message in the place of each call; what is no event stays."""
    written: list[Part] = []
    has_text = False
    for part in parts:
        if not is_responses_event(part):
            written.append(part)
            continue
        kind: str = part["type"]
        item: Mapping[str, Any] = part.get("item", {})
        is_call = "call_id" in item or "_call_" in kind
        if not is_call:
            has_text = has_text or kind.startswith("response.output_text")
            written.append(part)
        elif kind == "response.output_item.done":
            text = call_text(called_name(item), content(item), tag)
            index: int = part.get("output_index", 0)
            written += ev_message("\n" * has_text + text, index=index, pieces=_PIECES)
            has_text = True
    return written


def call_text(name: str, body: str, tag: str) -> str:
    """A call as the model writes it. `body`: the raw input of a freeform tool, the JSON arguments of a function."""
    return f'<{tag} name="{name}">\n{body}\n</{tag}>'
