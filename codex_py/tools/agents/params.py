"""Arguments of the tools for subagents, and what a message to one is made of."""

from pathlib import Path

from pydantic import Field

from codex_py.protocol.prompts import UserPrompt
from codex_py.tools.base import LenientParams

_FILES = {"local_image"}
_LINKS = {"skill": "$", "mention": "@"}


class Refused(Exception):
    """The call cannot be done. The text is its whole output, in the words of Codex."""


class Item(LenientParams):
    type: str = Field(default="text", description="`text`, `local_image`, `skill` or `mention`.")
    text: str | None = Field(default=None, description="Of a `text`.")
    name: str | None = Field(default=None, description="Of a `skill` or `mention`.")
    path: str | None = Field(
        default=None, description="File of a `local_image` or `skill`, or target of a `mention`."
    )
    image_url: str | None = Field(default=None, description="Not supported: use `local_image`.")
    audio_url: str | None = Field(default=None, description="Not supported.")


class MessageParams(LenientParams):
    message: str | None = Field(
        default=None, description="The message as plain text. Either this or `items`."
    )
    items: list[Item] | None = Field(default=None, description="The message in parts.")


class SpawnParams(MessageParams):
    agent_type: str | None = Field(default=None, description="What kind of agent to start.")
    fork_context: bool = Field(
        default=False,
        description="True: it is told what the user has said so far. Default: false.",
    )
    model: str | None = Field(default=None, description="Another model than yours.")
    reasoning_effort: str | None = Field(default=None, description="Another effort than yours.")


class WaitParams(LenientParams):
    targets: list[str] = Field(description="Ids of the agents to wait for.")
    timeout_ms: float = Field(
        default=30_000,
        description="Default: 30000, at least 10000, at most 3600000. Prefer minutes to polling.",
    )


class SendParams(MessageParams):
    target: str = Field(description="Id of the agent.")
    interrupt: bool = Field(
        default=False,
        description="True: stop what it is doing and take up the message now. Default: false.",
    )


class CloseParams(LenientParams):
    target: str = Field(description="Id of the agent.")


class ResumeParams(LenientParams):
    id: str = Field(description="Id of the closed agent.")


def prompt_of(params: MessageParams, cwd: Path) -> UserPrompt:
    """The message of a call. `cwd`: absolute, for the paths of images.

    Raises:
        Refused: there is none, or it is not one that an agent can be sent.
    """
    message, items = params.message, params.items
    if message is not None and items is not None:
        raise Refused("Provide either message or items, but not both")
    if message is None and items is None:
        raise Refused("Provide one of: message or items")
    if items is None:
        items = [Item(text=message)]
    if not items:
        raise Refused("Items can't be empty")
    text = "\n".join(filter(None, map(_text, items)))
    images = tuple(str(cwd / (item.path or "")) for item in items if item.type in _FILES)
    if not text.strip() and not images:
        raise Refused("Empty message can't be sent to an agent")
    return UserPrompt(text, images)


def _text(item: Item) -> str:
    if item.type in _FILES:
        return ""
    if (sign := _LINKS.get(item.type)) is not None:
        return f"[{sign}{item.name or ''}]({item.path or ''})"
    if item.type != "text":
        raise Refused(f"Items of the type {item.type!r} cannot be sent to an agent here")
    return item.text or ""
