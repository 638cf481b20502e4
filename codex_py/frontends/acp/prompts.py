"""Reads the prompts of a client, and expands slash commands: built-in ones, and those that the user
keeps in files."""

import asyncio
import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote

from acp import schema

from codex_py.app.features.reviews import Reviews
from codex_py.app.json_rpc import INVALID_PARAMS, RpcError
from codex_py.app.patching import changes_since_commit
from codex_py.app.review.change import change_to_review
from codex_py.app.review.target import ReviewTarget, review_target
from codex_py.app.session import Session
from codex_py.app.user_programs import user_programs
from codex_py.app.views.fences import fenced
from codex_py.command_line.session_report import (
    server_lines,
    skill_lines,
    status_rows,
)
from codex_py.config.config import Config
from codex_py.config.custom_prompts import CustomPrompt, find_custom_prompts
from codex_py.config.skills import find_skills
from codex_py.instructions import instruction_text
from codex_py.protocol.frozen import frozen
from codex_py.protocol.json_fields import objects
from codex_py.protocol.messages import EncodedItem, decode_json
from codex_py.streams.plain_text import cut
from codex_py.streams.terminal import aligned

_OWN: Final[Mapping[str, tuple[str, str]]] = {
    "init": ("have AGENTS.md written", ""),
    "compact": ("sum up the conversation, to make room", ""),
    "review": (
        "have a change reviewed",
        "[--uncommitted | --base BRANCH | --commit SHA | WORDS]",
    ),
}
"""The built-in commands for the model: what each does, and a hint at its argument."""
_ANSWERED: Final[Mapping[str, tuple[str, str]]] = {
    "status": ("show the settings and what was used", ""),
    "help": ("list the commands", ""),
    "mcp": ("show the MCP servers and their tools", "[verbose]"),
    "skills": ("list the skills that a prompt can name", ""),
    "diff": ("show what differs from the last commit", ""),
}
"""The built-in commands that are answered without the model, in the same form."""
_DIFF_CHARACTERS: Final = 100_000
"""The limit for an answer to `/diff`."""


@frozen
class EditorPrompt:
    """A prompt of a client, and the way to run it."""

    said: str
    """The text that the user typed, with links in their places."""
    context: str = ""
    """The files that the client embedded; they follow the user's text."""
    links: Sequence[str] = ()
    """The targets of the links to files that the client did not embed."""
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
    links: list[str] = []
    images: list[bytes] = []
    for block in blocks:
        match block:
            case schema.TextContentBlock(text=text):
                said.append(text)
            case schema.ResourceContentBlock(name=name, uri=uri):
                place = _place(uri)
                said.append(f"[@{name}]({place})")
                links.append(place)
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
    return EditorPrompt(text, "\n".join(context), links, images)


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
        for name in (*_OWN, *_ANSWERED):
            prompts.pop(name, None)
        self._prompts = prompts

    def update(self) -> dict[str, Any]:
        """The update of ACP that tells a client the commands."""
        commands = [_command(*described) for described in self._described()]
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": commands,
        }

    def _described(self) -> Iterator[tuple[str, str, str]]:
        """All commands: the name, what it does, and a hint at its argument."""
        for name, (description, hint) in {**_OWN, **_ANSWERED}.items():
            yield name, description, hint
        for name, prompt in self._prompts.items():
            yield name, prompt.description or "a prompt", prompt.argument_hint

    async def answer(self, prompt: EditorPrompt, session: Session) -> str | None:
        """Answer a command that needs no model, in Markdown. None for any other prompt.

        Raises:
            CodexError: the command has no answer, or its argument is wrong.
        """
        name, argument = _command_of(prompt)
        if name not in _ANSWERED:
            return None
        if argument and (name, argument) != ("mcp", "verbose"):
            # A sentence that begins with a slash is for the model.
            return None
        match name:
            case "status":
                return _block(aligned(status_rows(session)))
            case "help":
                rows: list[tuple[str, str]] = []
                for command, description, hint in self._described():
                    rows.append((f"/{command} {hint}".rstrip(), description))
                return _block(aligned(rows))
            case "mcp":
                verbose = bool(argument)
                lines = server_lines(session, self._config, verbose=verbose)
                if not lines:
                    return "No MCP servers are configured."
                return _block(lines)
            case "skills":
                return await asyncio.to_thread(self._skills)
            case _:
                return await asyncio.to_thread(self._diff)

    def _skills(self) -> str:
        by_name = find_skills(self._config, self._environment).by_name()
        skills = [by_name[name][0] for name in sorted(by_name)]
        return _block(skill_lines(skills))

    def _diff(self) -> str:
        config = self._config
        programs = user_programs(config, self._environment)
        diff = changes_since_commit(
            config.cwd, programs, self._environment, config.files
        )
        if not diff:
            return "Nothing has been changed since the last commit."
        shown = cut(diff, _DIFF_CHARACTERS)
        return fenced(shown.rstrip("\n"), "diff")

    async def expanded(self, prompt: EditorPrompt, session: Session) -> EditorPrompt:
        """Expand a slash command. Other text after a slash stays unchanged: it may be a path.

        Raises:
            CodexError: the arguments of the command cannot be used.
        """
        command, argument = _command_of(prompt)
        if not command:
            return prompt
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


def _command_of(prompt: EditorPrompt) -> tuple[str, str]:
    """The command that a prompt names and its argument; both are empty if it names none."""
    if not prompt.said.lstrip().startswith("/"):
        return "", ""
    name, *rest = prompt.said.split(maxsplit=1)
    return name.removeprefix("/"), "".join(rest).strip()


def _block(lines: Iterable[str]) -> str:
    return fenced("\n".join([line.rstrip() for line in lines]))


def _command(name: str, description: str, hint: str) -> dict[str, Any]:
    """A command in the format of ACP. `hint`: empty if the command takes no argument."""
    command: dict[str, Any] = {"name": name, "description": description, "input": None}
    if hint:
        command["input"] = {"hint": hint}
    return command
