"""The two tools, `codex` and `codex-reply`: what they take and what they give back.

Names, types and results are those of the tools of Codex 0.145, the descriptions are our own. `profile` and the policy
`on-failure` are of its earlier releases.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

import mcp_types as types
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.arguments import Arguments
from codex_py.frontends.configuration import read_config, working_directory
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode

_POLICIES: Final = ("untrusted", "on-failure", "on-request", "never")
_MODES: Final = ("read-only", "workspace-write", "danger-full-access")


def _text(description: str, *values: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": description, "type": "string"}
    return {**schema, "enum": list(values)} if values else schema


_OUTPUT: Final = {
    "type": "object",
    "properties": {"threadId": {"type": "string"}, "content": {"type": "string"}},
    "required": ["threadId", "content"],
}

TOOLS: Final = [
    types.Tool(
        name="codex",
        title="Codex",
        description=(
            "Have a coding agent work on a task in a folder of this machine, until it is done. It runs"
            " commands and edits files there. The result is its last message, and the id with which"
            " codex-reply goes on."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "prompt": _text("What to do."),
                "model": _text("The model to use."),
                "profile": _text("The profile of the configuration to use."),
                "cwd": _text("The folder to work in; relative to that of the server."),
                "approval-policy": _text("When the user is asked about a command.", *_POLICIES),
                "sandbox": _text("What commands may touch.", *_MODES),
                "config": {
                    "description": "Settings of config.toml, by their dotted names.",
                    "type": "object",
                    "additionalProperties": True,
                },
                "base-instructions": _text("Takes the place of the agent's own instructions."),
                "developer-instructions": _text("What the agent is told beside them."),
                "compact-prompt": _text("What a long conversation is summed up with."),
            },
            "required": ["prompt"],
            "additionalProperties": False,
        },
        output_schema=_OUTPUT,
    ),
    types.Tool(
        name="codex-reply",
        title="Codex Reply",
        description=(
            "Say something more in a conversation that codex began: a correction, an answer, the next"
            " task. The agent knows all that was said and done in it."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "threadId": _text("The id of the conversation, from the result of codex."),
                "conversationId": _text("The old name of threadId."),
                "prompt": _text("What to say."),
            },
            "required": ["prompt"],
        },
        output_schema=_OUTPUT,
    ),
]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


class NewThread(BaseModel):
    """The arguments of `codex`."""

    model_config = ConfigDict(extra="forbid", alias_generator=_kebab)

    prompt: str
    model: str | None = None
    profile: str | None = None
    cwd: str | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox: SandboxMode | None = None
    config: dict[str, Any] | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    compact_prompt: str | None = None

    def settings(
        self, server: Arguments, environment: Mapping[str, str], *, has_user: bool
    ) -> Config:
        """The configuration of the thread: the arguments on top of the server's command line.

        Raises:
            CodexError: it cannot be used, or there is no such folder.
        """
        table: dict[str, Any] = {}
        for key, value in (self.config or {}).items():
            _set(table, key, value)
        own = {
            "model": self.model,
            "sandbox_mode": self.sandbox,
            "approval_policy": self.approval_policy and self.approval_policy.value,
        }
        table |= {key: value for key, value in own.items() if value is not None}
        config = server_config(
            replace(server, profile=self.profile or server.profile),
            environment,
            cwd=self.cwd,
            has_user=has_user,
            table=table,
        )
        texts = {
            "base_instructions": self.base_instructions,
            "developer_instructions": self.developer_instructions,
            "compact_prompt": self.compact_prompt,
        }
        return replace(config, **{name: t for name, t in texts.items() if t is not None})


class Reply(BaseModel):
    """The arguments of `codex-reply`."""

    model_config = ConfigDict(alias_generator=to_camel)

    prompt: str
    thread_id: str | None = None
    conversation_id: str | None = None

    @property
    def id(self) -> str:
        """
        Raises:
            CodexError: none is given.
        """
        name = self.thread_id or self.conversation_id
        if name is None:
            raise CodexError("codex-reply needs `threadId`: the id that codex gave", code="usage")
        return name


_ArgumentsT = TypeVar("_ArgumentsT", NewThread, Reply)


def arguments_of(kind: type[_ArgumentsT], data: Mapping[str, Any] | None) -> _ArgumentsT:
    """
    Raises:
        CodexError: these are no arguments of the tool.
    """
    try:
        return kind.model_validate(data or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CodexError(f"wrong arguments: `{place}`: {first['msg']}", code="usage") from error


def server_config(
    server: Arguments,
    environment: Mapping[str, str],
    *,
    cwd: str | None,
    has_user: bool,
    table: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration of a thread in a folder, relative to the server's own.

    Args:
        table: settings that win over all others, in the form of `config.toml`.

    Raises:
        CodexError: it cannot be used, or there is no such folder.
    """
    folder = str(working_directory(server) / (cwd or "."))
    config = read_config(replace(server, cd=folder), environment, table)
    if config.approval_policy is None and not has_user:
        # What the model would ask for could only be refused.
        return replace(config, approval_policy=ApprovalPolicy.NEVER)
    return config


def _set(table: dict[str, Any], dotted: str, value: Any) -> None:
    *parents, last = dotted.split(".")
    for parent in parents:
        inner = table.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise CodexError(f"`config`: {dotted!r} is below a plain value", code="config")
        table = cast("dict[str, Any]", inner)
    table[last] = value


def tool_result(
    thread_id: str | None, text: str, *, is_error: bool = False
) -> types.CallToolResult:
    """The result of either tool; without an id where no thread has begun."""
    result = types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )
    if thread_id is not None:
        result.structured_content = {"threadId": thread_id, "content": text}
    return result
