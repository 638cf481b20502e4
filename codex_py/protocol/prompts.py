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

_NO_MESSAGES: Final = (
    b'{"type":"function_call',
    b'{"type":"custom_tool_call',
    b'{"type":"reasoning',
)
"""First bytes of items that are no messages."""
_IMAGE_LABEL = re.compile(r'<image name=\[Image #\d+\] path="(.*)">', re.DOTALL)


@frozen
class UserPrompt:
    """A prompt of the user, as read from an item."""

    text: str
    images: tuple[str, ...] = ()
    """Absolute paths of the attached files, which may no longer exist."""


@frozen
class PastPrompt:
    """A prompt in the history of a thread."""

    prompt: UserPrompt
    turns: int
    """The argument of `Session.rollback` that drops this prompt and everything after it."""


@frozen
class Note:
    """A message to the model that a program wrote. It never counts as a prompt of the user."""

    text: str
    role: Literal["developer", "user"] = "developer"

    def encoded(self) -> EncodedItem:
        """The note as an item.

        A user message that could be taken for a prompt is put between `<note>` tags.
        """
        text = self.text
        if self.role == "user" and not is_context([text]):
            text = f"<note>\n{text}\n</note>"
        return message(self.role, [input_text(text)])


def may_be_message(item: EncodedItem) -> bool:
    """False if the first bytes show that the item is not a message.

    The test is quick: other items, such as outputs, may have megabytes to search.
    """
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
    if fields.get("type", "message") != "message":
        return None
    if fields.get("role") != "user":
        return None
    texts = list(message_texts(fields.get("content")))
    if is_context(texts) or "".join(texts).startswith(SUMMARY_OPENING):
        return None
    # Each image stands between a label and `</image>`.
    images: list[str] = []
    words: list[str] = []
    for text in texts:
        label = _IMAGE_LABEL.fullmatch(text)
        if label is not None:
            images.append(label[1])
        elif text != "</image>":
            words.append(text)
    return UserPrompt("".join(words), tuple(images))


def is_summary(item: EncodedItem) -> bool:
    """True if the item is the summary after a compaction."""
    if not may_be_message(item) or SUMMARY_OPENING.encode() not in item:
        return False
    data: Any = decode_json(item)
    text = "".join(message_texts(data.get("content")))
    return data.get("role") == "user" and text.startswith(SUMMARY_OPENING)


def is_models(item: EncodedItem) -> bool:
    """True if the model made the item.

    Outputs, and messages of other roles, are not the model's.
    """
    data: Any = decode_json(item)
    if str(data.get("type")).endswith("_output"):
        return False
    return data.get("role") in {None, "assistant"}


def context_length(items: Sequence[EncodedItem]) -> int:
    """The number of items that a program wrote before the first prompt."""
    for index, item in enumerate(items):
        data: Any = decode_json(item)
        if data.get("role") in {"developer", "system"}:
            continue
        texts = list(message_texts(data.get("content")))
        if not is_context(texts):
            return index
    return len(items)


def context_texts(opening: str, items: Sequence[EncodedItem]) -> Iterator[str]:
    """Yield the text parts of developer and user messages that begin with `opening`.

    The latest message comes first.
    """
    encoded_opening = encode_json(opening)[1:-1]
    for item in reversed(items):
        # Decode only likely items: decoding a long history takes as long as reading it.
        if not may_be_message(item) or encoded_opening not in item:
            continue
        data: Any = decode_json(item)
        if data.get("role") not in {"developer", "user"}:
            continue
        content = data.get("content")
        if isinstance(content, list):
            for text in message_texts(cast("list[Any]", content)):
                if text.startswith(opening):
                    yield text


def message_texts(content: Any) -> Iterator[str]:
    """The text parts of a message's `content`, which may have any type."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in cast("list[Any]", content):
            if not isinstance(part, dict):
                continue
            text = cast("dict[str, Any]", part).get("text")
            if isinstance(text, str):
                yield text
