"""Tells the prompts of the user from messages of the role `user` that a program wrote. LIGHT."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import (
    EncodedItem,
    decode_json,
    encode_json,
    input_text,
    message,
)

AGENTS_MD: Final = "# AGENTS.md instructions"
ADMINISTRATORS: Final = "<required_instructions>"
CONTEXT_BLOCKS: Final = (
    ADMINISTRATORS,
    "<permissions instructions>",
    AGENTS_MD,
    "<environment_context>",
)
"""First words of the context parts that are sent again after they changed."""
CONTEXT_OPENINGS: Final = (
    *CONTEXT_BLOCKS,
    "<skills_instructions>",
    "<collaboration_mode>",
    "<model_switch>",
    "<tools>",
    "<user_instructions>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<note>",
    "<hook_prompt ",
)
"""First words of user messages that programs write (Codex 0.80 to 0.169)."""

SUMMARY_OPENING: Final = "Another language model started to solve this problem"
"""First words of the summary after a compaction, here and in Codex."""

_NO_MESSAGES: Final = tuple(
    b'{"type":"%b' % kind
    for kind in (b"function_call", b"custom_tool_call", b"reasoning")
)
_IMAGE_LABEL = re.compile(r'<image name=\[Image #\d+\] path="(.*)">', re.DOTALL)


@frozen
class UserPrompt:
    """A prompt of the user, as read from an item."""

    text: str
    images: tuple[str, ...] = ()
    """Absolute paths of the attached files, which may no longer exist."""


@frozen
class PastPrompt:
    prompt: UserPrompt
    turns: int
    """The argument of `Session.rollback` that drops this prompt and everything after it."""


@frozen
class Note:
    """A message to the model that a program wrote. It never counts as a prompt of the user."""

    text: str
    role: Literal["developer", "user"] = "developer"

    def encoded(self) -> EncodedItem:
        """The note as an item. A user message that could be taken for a prompt is put between
        `<note>` tags."""
        text = self.text
        if self.role == "user" and not is_context([text]):
            text = f"<note>\n{text}\n</note>"
        return message(self.role, [input_text(text)])


def may_be_message(item: EncodedItem) -> bool:
    """False if the first bytes show that the item is not a message. A quick test: outputs may have
    megabytes to search."""
    return not item.startswith(_NO_MESSAGES)


def is_context(texts: Sequence[str]) -> bool:
    """True if a program wrote the user message with these text parts."""
    return bool(texts) and texts[0].startswith(CONTEXT_OPENINGS)


def user_prompt(item: EncodedItem) -> UserPrompt | None:
    """The prompt in this item; None for all others, the summary of a compaction included."""
    # Most items are not prompts, and decoding a long thread takes as long as reading it.
    if not may_be_message(item) or b'"user"' not in item:
        return None
    return prompt_of(decode_json(item))


def prompt_of(data: Any) -> UserPrompt | None:
    """The prompt in a decoded item, as in `user_prompt`."""
    if not isinstance(data, dict):
        return None
    fields = cast("dict[str, Any]", data)
    if fields.get("role") != "user" or fields.get("type", "message") != "message":
        return None
    texts = list(message_texts(fields.get("content")))
    if is_context(texts) or "".join(texts).startswith(SUMMARY_OPENING):
        return None
    images = tuple(
        match[1] for text in texts if (match := _IMAGE_LABEL.fullmatch(text))
    )
    said = [
        text
        for text in texts
        if text != "</image>" and not _IMAGE_LABEL.fullmatch(text)
    ]
    return UserPrompt("".join(said), images)


def is_summary(item: EncodedItem) -> bool:
    """True if the item is the summary after a compaction."""
    if not may_be_message(item) or SUMMARY_OPENING.encode() not in item:
        return False
    data: Any = decode_json(item)
    text = "".join(message_texts(data.get("content")))
    return data.get("role") == "user" and text.startswith(SUMMARY_OPENING)


def is_models(item: EncodedItem) -> bool:
    """True if the model made the item: neither an output nor a message of another role."""
    data: Any = decode_json(item)
    is_output = str(data.get("type")).endswith("_output")
    return data.get("role") in {None, "assistant"} and not is_output


def context_length(items: Sequence[EncodedItem]) -> int:
    """The number of items that a program wrote before the first prompt."""
    for index, item in enumerate(items):
        data: Any = decode_json(item)
        is_instruction = data.get("role") in {"developer", "system"}
        if not is_instruction and not is_context(
            list(message_texts(data.get("content")))
        ):
            return index
    return len(items)


def context_texts(opening: str, items: Sequence[EncodedItem]) -> Iterator[str]:
    """The text parts of developer and user messages that begin with `opening`, the latest message
    first."""
    mark = encode_json(opening)[1:-1]
    for item in reversed(items):
        # Decoding a long history takes as long as reading it.
        data: Any = decode_json(item) if may_be_message(item) and mark in item else {}
        content = data.get("content")
        if data.get("role") in {"developer", "user"} and isinstance(content, list):
            texts = message_texts(cast("list[Any]", content))
            yield from (text for text in texts if text.startswith(opening))


def message_texts(content: Any) -> Iterator[str]:
    """The text parts of a message's `content`, which may have any type."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in cast("list[Any]", content):
            if isinstance(part, dict):
                text = cast("dict[str, Any]", part).get("text")
            else:
                text = None
            if isinstance(text, str):
                yield text
