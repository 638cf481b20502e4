"""The two tools, `codex` and `codex-reply`: their arguments and their results.

Names, types and results are those of the tools of Codex 0.145, the descriptions are our own. `profile` and the policy
`on-failure` are of its earlier releases.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal, TypeVar

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import folder_config, nested_table
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.mcp_server.ceiling import Ceiling
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode
from codex_py.protocol.frozen import frozen


@frozen
class ThreadConfigs:
    """Makes the configurations of threads, from what the server was started with."""

    arguments: Arguments
    environment: Mapping[str, str]
    ceiling: Ceiling | None = None
    """Bounds what a client asks for; None if it is trusted."""

    def config(
        self,
        cwd: str | None,
        *,
        has_user: bool,
        profile: str | None = None,
        table: Mapping[str, Any] | None = None,
    ) -> Config:
        """The configuration of a thread in a folder, relative to the server's own; the `table` wins over all other
        settings.

        Raises:
            CodexError: it cannot be used, it allows more than the ceiling, or there is no such folder.
        """
        arguments = replace(self.arguments, profile=profile or self.arguments.profile)
        config = folder_config(arguments, self.environment, cwd, table)
        if self.ceiling is not None:
            config = self.ceiling.narrowed(config, asks_for_sandbox="sandbox_mode" in (table or {}))
        if config.approval_policy is None and not has_user:
            # A question of the model could only be refused.
            return replace(config, approval_policy=ApprovalPolicy.NEVER)
        return config


def _optional(description: str) -> Any:
    return Field(None, description=description)


class NewThread(BaseModel):
    """The arguments of `codex`."""

    model_config = ConfigDict(extra="forbid", alias_generator=lambda name: name.replace("_", "-"))

    prompt: str = Field(description="What to do.")
    model: str | None = _optional("The model to use.")
    profile: str | None = _optional("The profile of the configuration to use.")
    cwd: str | None = _optional("The folder to work in; relative to that of the server.")
    approval_policy: Literal["untrusted", "on-failure", "on-request", "never"] | None = _optional(
        "When the user is asked about a command."
    )
    sandbox: SandboxMode | None = _optional("What commands may touch.")
    config: dict[str, Any] | None = _optional("Settings of config.toml, by their dotted names.")
    base_instructions: str | None = _optional("Takes the place of the agent's own instructions.")
    developer_instructions: str | None = _optional("What the agent is told beside them.")
    compact_prompt: str | None = _optional("What a long conversation is summed up with.")

    def settings(self, configs: ThreadConfigs, *, has_user: bool) -> Config:
        """The configuration of the thread: the arguments on top of the server's command line. Raises as
        `configs.config`."""
        ceiling = configs.ceiling
        table = nested_table(self.config or {})
        if ceiling is not None:
            ceiling.check_settings("config", table)
        given = self.model_dump(exclude_none=True)
        flags = {"model": "model", "sandbox": "sandbox_mode", "approval_policy": "approval_policy"}
        table |= {key: given[name] for name, key in flags.items() if name in given}
        config = configs.config(self.cwd, has_user=has_user, profile=self.profile, table=table)
        if ceiling is not None and self.profile not in {None, configs.arguments.profile}:
            for layer in config.layers.layers:
                if layer.name == "profile":
                    ceiling.check_settings("profile", layer.values)
        texts = ("base_instructions", "developer_instructions", "compact_prompt")
        return replace(config, **{name: given[name] for name in texts if name in given})


class Reply(BaseModel):
    """The arguments of `codex-reply`."""

    model_config = ConfigDict(alias_generator=to_camel)

    prompt: str = Field(description="What to say.")
    thread_id: str | None = _optional("The id of the conversation, from the result of codex.")
    conversation_id: str | None = _optional("The old name of threadId.")

    @property
    def id(self) -> str:
        """The id that was given, under either name; a `CodexError` if none was."""
        name = self.thread_id or self.conversation_id
        if name is None:
            raise CodexError("codex-reply needs `threadId`: the id that codex gave", code="usage")
        return name


def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The schema as Codex has it: without titles and without null."""
    schema = arguments.model_json_schema()
    properties: dict[str, Any] = {}
    for name, field in schema["properties"].items():
        kind = field.get("anyOf", [field])[0]
        properties[name] = {**kind, "description": field["description"]}
        properties[name].pop("title", None)
    return {key: schema[key] for key in ("type", "required")} | {"properties": properties}


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
        input_schema={**_schema(NewThread), "additionalProperties": False},
        output_schema=_OUTPUT,
    ),
    types.Tool(
        name="codex-reply",
        title="Codex Reply",
        description=(
            "Say something more in a conversation that codex began: a correction, an answer, the next"
            " task. The agent knows all that was said and done in it."
        ),
        input_schema=_schema(Reply),
        output_schema=_OUTPUT,
    ),
]

_ArgumentsT = TypeVar("_ArgumentsT", NewThread, Reply)


def arguments_of(kind: type[_ArgumentsT], data: Mapping[str, Any] | None) -> _ArgumentsT:
    """The arguments of a call; a `CodexError` if the tool does not take them."""
    try:
        return kind.model_validate(data or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CodexError(f"wrong arguments: `{place}`: {first['msg']}", code="usage") from error


def tool_result(
    thread_id: str | None, text: str, *, is_error: bool = False
) -> types.CallToolResult:
    """The result of either tool; without an id if no thread has begun."""
    structured = None if thread_id is None else {"threadId": thread_id, "content": text}
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], structured_content=structured, is_error=is_error)
