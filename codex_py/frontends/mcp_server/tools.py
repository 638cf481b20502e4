"""The two tools, `codex` and `codex-reply`: their arguments and their results.

Names, types and results are those of the tools of Codex 0.145; `profile` and the policy
`on-failure` come from its earlier releases. `instructions/mcp_server.json` describes the tools to
the client's model.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar

import mcp_types as types

from codex_py.command_line.arguments import Arguments
from codex_py.command_line.configuration import folder_config, nested_table
from codex_py.config.config import Config
from codex_py.errors import CodexError
from codex_py.frontends.mcp_server.ceiling import Ceiling
from codex_py.protocol.annotations import CamelCase, Hyphenated
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode
from codex_py.protocol.checked import read
from codex_py.protocol.frozen import frozen


@frozen
class ThreadConfigs:
    """Makes the configurations of threads from the server's own."""

    arguments: Arguments
    environment: Mapping[str, str]
    ceiling: Ceiling | None = None
    """The bounds for a client's settings; None if the client is trusted."""

    def config(
        self,
        cwd: str | None,
        *,
        has_user: bool,
        profile: str | None = None,
        table: Mapping[str, Any] | None = None,
    ) -> Config:
        """Make the configuration of a thread.

        Args:
            cwd: the thread's folder, relative to the server's own.
            table: settings that win over all others.

        Raises:
            CodexError: the configuration cannot be used, it allows more than the ceiling, or the
                folder does not exist.
        """
        arguments = replace(self.arguments, profile=profile or self.arguments.profile)
        config = folder_config(arguments, self.environment, cwd, table)
        if self.ceiling is not None:
            asks_for_sandbox = table is not None and "sandbox_mode" in table
            config = self.ceiling.narrowed(config, asks_for_sandbox=asks_for_sandbox)
        if config.approval_policy is None and not has_user:
            # Without a user, a question about a call could only be refused.
            return replace(config, approval_policy=ApprovalPolicy.NEVER)
        return config


@frozen(kw_only=True)
class NewThread(Hyphenated):
    """The arguments of `codex`."""

    takes_others: ClassVar[bool] = False
    prompt: str
    model: str | None = None
    profile: str | None = None
    cwd: str | None = None
    approval_policy: (
        Literal["untrusted", "on-failure", "on-request", "never"] | None
    ) = None
    sandbox: SandboxMode | None = None
    config: Mapping[str, Any] | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    compact_prompt: str | None = None

    def settings(self, configs: ThreadConfigs, *, has_user: bool) -> Config:
        """The configuration of the thread: these arguments on top of the server's command line.

        Raises the errors of `configs.config`.
        """
        ceiling = configs.ceiling
        table = nested_table(self.config or {})
        if ceiling is not None:
            ceiling.check_settings("config", table)
        own = {
            "model": self.model,
            "sandbox_mode": self.sandbox,
            "approval_policy": self.approval_policy,
        }
        table |= _given(own)
        config = configs.config(
            self.cwd, has_user=has_user, profile=self.profile, table=table
        )
        names_profile = self.profile not in {None, configs.arguments.profile}
        if ceiling is not None and names_profile:
            for layer in config.layers.layers:
                if layer.name == "profile":
                    ceiling.check_settings("profile", layer.values)
        texts = {
            "base_instructions": self.base_instructions,
            "developer_instructions": self.developer_instructions,
            "compact_prompt": self.compact_prompt,
        }
        return replace(config, **_given(texts))


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


@frozen(kw_only=True)
class CodexReply(CamelCase):
    """The arguments of `codex-reply`."""

    takes_others: ClassVar[bool] = True
    """Unknown arguments are ignored, as Codex does."""
    prompt: str
    thread_id: str | None = None
    conversation_id: str | None = None

    @property
    def id(self) -> str:
        """The id that was given, under either name. Raises a `CodexError` if none was."""
        name = self.thread_id or self.conversation_id
        if name is None:
            raise CodexError(
                "codex-reply needs `threadId`: the id that codex gave", code="usage"
            )
        return name


_ArgumentsT = TypeVar("_ArgumentsT", NewThread, CodexReply)


def arguments_of(
    kind: type[_ArgumentsT], data: Mapping[str, Any] | None
) -> _ArgumentsT:
    """Read the arguments of a call. Raises a `CodexError` if the tool does not accept them."""
    found, mistakes = read(kind, dict(data or {}), exact=True)
    if kind.takes_others:
        mistakes = [each for each in mistakes if each.reason != "unknown"]
    if mistakes:
        first = mistakes[0].error()
        place = ".".join(first.path)
        raise CodexError(f"wrong arguments: `{place}`: {first.reason}", code="usage")
    return found


def tool_result(
    thread_id: str,
    text: str,
    *,
    is_error: bool = False,
) -> types.CallToolResult:
    """Make the result of either tool. `thread_id`: empty if no thread has begun."""
    structured = None
    if thread_id:
        structured = {"threadId": thread_id, "content": text}
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(
        content=[content], structured_content=structured, is_error=is_error
    )
