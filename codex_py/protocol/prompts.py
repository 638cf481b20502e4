"""Which messages of the role `user` a person wrote, and which a program put there. LIGHT."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, cast

from codex_py.protocol.frozen import frozen
from codex_py.protocol.messages import EncodedItem, decode_json, input_text, message

CONTEXT_OPENINGS: Final = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<collaboration_mode>",
    "<model_switch>",
    "<tools>",
    "<user_instructions>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<note>",
)
"""How the texts begin that programs, not people, put into a thread (Codex 0.80 to 0.169)."""

SUMMARY_OPENING: Final = "Another language model started to solve this problem"
"""How the message begins that stands for what a compaction took away, here and in Codex."""

_IMAGE_LABEL = re.compile(r'<image name=\[Image #\d+\] path="(.*)">', re.DOTALL)


@frozen
class UserPrompt:
    """What a person said, read back from an item."""

    text: str
    images: tuple[str, ...] = ()
    """Absolute paths of the files that were attached, which may have gone since."""


@frozen
class PastPrompt:
    prompt: UserPrompt
    turns: int
    """The argument of `Session.rollback` that drops this prompt and everything after it."""


@frozen
class Note:
    """A message to the model that a program wrote. It never counts as a person's prompt."""

    text: str
    role: Literal["developer", "user"] = "developer"

    def encoded(self) -> EncodedItem:
        """The item. A user message that could be taken for a person's is put between `<note>` tags."""
        text = self.text
        if self.role == "user" and not is_context([text]):
            text = f"<note>\n{text}\n</note>"
        return message(self.role, [input_text(text)])


def is_context(texts: Sequence[str]) -> bool:
    """Whether a message of these text parts, with the role `user`, is a program's."""
    return bool(texts) and texts[0].startswith(CONTEXT_OPENINGS)


def user_prompt(item: EncodedItem) -> UserPrompt | None:
    """What the user said in this item; None for any other item, the summary of a compaction included."""
    # Most items are others, and decoding all of a long thread takes as long as reading it did.
    if b'"user"' not in item:
        return None
    return prompt_of(decode_json(item))


def prompt_of(data: Any) -> UserPrompt | None:
    """The same of an item that is decoded already."""
    if not isinstance(data, dict):
        return None
    fields = cast("dict[str, Any]", data)
    if fields.get("role") != "user" or fields.get("type", "message") != "message":
        return None
    texts = list(message_texts(fields.get("content")))
    if is_context(texts) or "".join(texts).startswith(SUMMARY_OPENING):
        return None
    images = tuple(match[1] for text in texts if (match := _IMAGE_LABEL.fullmatch(text)))
    said = [text for text in texts if text != "</image>" and not _IMAGE_LABEL.fullmatch(text)]
    return UserPrompt("".join(said), images)


def is_summary(item: EncodedItem) -> bool:
    """Whether the item is the message that stands for what a compaction took away."""
    if SUMMARY_OPENING.encode() not in item:
        return False
    data: Any = decode_json(item)
    return data.get("role") == "user" and "".join(message_texts(data.get("content"))).startswith(
        SUMMARY_OPENING
    )


def context_length(items: Sequence[EncodedItem]) -> int:
    """How many items at the front a program wrote, before the user's first words."""
    for index, item in enumerate(items):
        data: Any = decode_json(item)
        is_told = data.get("role") in {"developer", "system"}
        if not is_told and not is_context(list(message_texts(data.get("content")))):
            return index
    return len(items)


def message_texts(content: Any) -> Iterator[str]:
    """The text parts of a message's `content`, whatever that is."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in cast("list[Any]", content):
            text = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else None
            if isinstance(text, str):
                yield text
