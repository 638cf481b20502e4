"""Reads the prompts of a client, and expands slash commands: built-in ones, and those that the user
keeps in files."""

import asyncio
import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from acp import schema

from codex_py.app.features.reviews import Reviews
from codex_py.app.json_rpc import INVALID_PARAMS, RpcError
from codex_py.app.review.change import change_to_review
from codex_py.app.review.target import ReviewTarget, review_target
from codex_py.app.session import Session
from codex_py.config.config import Config
from codex_py.config.custom_prompts import CustomPrompt, find_custom_prompts
from codex_py.instructions import instruction_text
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import objects
from codex_py.protocol.messages import EncodedItem, decode_json

_OWN: Final[Mapping[str, tuple[str, str]]] = {
    "init": ("have AGENTS.md written", ""),
    "compact": ("sum up the conversation, to make room", ""),
    "review": (
        "have a change reviewed",
        "[--uncommitted | --base BRANCH | --commit SHA | WORDS]",
    ),
}
"""The built-in commands: what each does, and a hint at its argument."""


@frozen
class EditorPrompt:
    """A prompt of a client, and the way to run it."""

    said: str
    """The text that the user typed, with links in their places."""
    context: str = ""
    """The files that the client embedded; they follow the user's text."""
    images: Sequence[bytes] = ()
    model: str | None = None
    """The model for this turn; None for the session's own."""
    compacts: bool = False
    """True: compact the conversation instead of running a turn."""

    @property
    def text(self) -> str:
        """What is sent to the model."""
        parts = [part for part in (self.said, self.context) if part]
        return "\n\n".join(parts)


def read_prompt(blocks: Sequence[Any]) -> EditorPrompt:
    """Read the parts of a prompt. Raises an `RpcError` if one cannot be used."""
    said: list[str] = []
    context: list[str] = []
    images: list[bytes] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock(text=text):
                said.append(text)
            case schema.ResourceContentBlock(name=name, uri=uri):
                said.append(f"[@{name}]({_place(uri)})")
            case schema.ImageContentBlock(data=data):
                images.append(_decoded(data))
            case schema.EmbeddedResourceContentBlock(resource=resource):
                place = _place(resource.uri)
                name = place.rpartition("/")[2]
                said.append(f"[@{name}]({place})")
                if isinstance(resource, schema.TextResourceContents):
                    context.append(
                        f'<context ref="{place}">\n{resource.text}\n</context>'
                    )
                elif (resource.mime_type or "").startswith("image/"):
                    images.append(_decoded(resource.blob))
            case _:
                raise RpcError(
                    INVALID_PARAMS, f"`prompt`: no part of type {block.type!r} is taken"
                )
    text = "".join(said)
    if not text.strip() and not images:
        raise RpcError(INVALID_PARAMS, "`prompt` is empty")
    return EditorPrompt(text, "\n".join(context), images)


def _place(uri: str) -> str:
    """Convert a `file:` URI to a path, keeping a suffix such as `#L10`.

    Other URIs are returned unchanged.
    """
    if not uri.startswith("file://"):
        return uri
    path, sign, fragment = uri.removeprefix("file://").partition("#")
    return f"{unquote(path)}{sign}{fragment}"


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RpcError(
            INVALID_PARAMS, f"`prompt`: an image is no Base64: {error}"
        ) from error


def prompt_images(item: EncodedItem) -> list[dict[str, Any]]:
    """The images in a prompt of the history, in the form in which a client sends them."""
    found: list[dict[str, Any]] = []
    for part in objects(decode_json(item).get("content")):
        url = str(part.get("image_url", ""))
        kind, _, data = url.partition(";base64,")
        if data:
            image = {
                "type": "image",
                "mimeType": kind.removeprefix("data:"),
                "data": data,
            }
            found.append(image)
    return found


class Commands:
    """The slash commands of one session."""

    def __init__(self, config: Config, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = environment
        self._prompts: dict[str, CustomPrompt] = {}
        """The user's prompts, by the names of their commands."""

    def find(self) -> None:
        """Read the user's prompts from files. Blocks."""
        found = find_custom_prompts(self._config, self._environment).found
        prompts: dict[str, CustomPrompt] = {}
        # A full name wins over a short one, and of two equal short names the first one wins.
        for prompt in reversed(found):
            prompts[prompt.short_name or prompt.name] = prompt
        for prompt in found:
            prompts[prompt.name] = prompt
        for name in _OWN:
            prompts.pop(name, None)
        self._prompts = prompts

    def update(self) -> dict[str, Any]:
        """The update of ACP that tells a client the commands."""
        commands: list[dict[str, Any]] = []
        for name, (description, hint) in _OWN.items():
            commands.append(_command(name, description, hint))
        for name, prompt in self._prompts.items():
            description = prompt.description or "a prompt"
            commands.append(_command(name, description, prompt.argument_hint))
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": commands,
        }

    async def expanded(self, prompt: EditorPrompt, session: Session) -> EditorPrompt:
        """Expand a slash command. Other text after a slash stays unchanged: it may be a path.

        Raises:
            CodexError: the arguments of the command cannot be used.
        """
        if not prompt.said.lstrip().startswith("/"):
            return prompt
        name, *rest = prompt.said.split(maxsplit=1)
        command = name.removeprefix("/")
        argument = "".join(rest).strip()
        found = self._prompts.get(command)
        if found is not None:
            text = found.filled(argument)
            return replace(prompt, said=text, model=found.model)
        match command:
            case "init":
                text = instruction_text("commands/init.md")
                return replace(prompt, said=text.strip())
            case "compact":
                return replace(prompt, compacts=True)
            case "review":
                text = await self._review(argument, session)
                return replace(prompt, said=text)
            case _:
                return prompt

    async def _review(self, argument: str, session: Session) -> str:
        """Begin a review, and return its prompt. Without an argument, it is of all changes."""
        if argument:
            target = review_target(argument)
        else:
            target = ReviewTarget(uncommitted=True)
        # Check the target before the turn: a failed turn would be part of the conversation.
        await asyncio.to_thread(
            change_to_review, target, self._config, self._environment
        )
        reviews = session.feature(Reviews)
        assert reviews is not None
        return reviews.begin(target)


def _command(name: str, description: str, hint: str) -> dict[str, Any]:
    """A command in the format of ACP. `hint`: empty if the command takes no argument."""
    command: dict[str, Any] = {"name": name, "description": description, "input": None}
    if hint:
        command["input"] = {"hint": hint}
    return command
