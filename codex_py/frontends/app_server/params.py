"""The params of the methods that are served, with the names of Codex 0.169.

What a client asks for and is not served is refused: it may be what protects. Null and empty values ask for nothing, and
some members have no meaning here.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from codex_py.app.features.goals import Status
from codex_py.command_line.configuration import nested_table
from codex_py.protocol.approval import SandboxMode

_WITHOUT_EFFECT: Final = {
    *("personality", "serviceName", "sessionStartSource", "threadSource", "clientUserMessageId"),
    *("turnTrigger", "rootTurnId", "parentTurnId", "useStateDbOnly", "refreshToken"),
    *("historyMode", "text_elements", "detail", "capabilities"),
}
"""They name, sort or decorate: nothing is done otherwise because of them."""


class Params(BaseModel):
    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )

    @model_validator(mode="before")
    @classmethod
    def _asked_for(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        own = {field.alias for field in cls.model_fields.values()}
        given = cast("dict[str, Any]", data).items()
        return {
            name: value
            for name, value in given
            if value is not None
            and (name in own or (name not in _WITHOUT_EFFECT and value not in ([], {}, False)))
        }


class ClientInfo(Params):
    name: str
    version: str
    title: str | None = None


class Initialize(Params):
    client_info: ClientInfo


class Nothing(Params):
    pass


ApprovalPolicy: TypeAlias = (
    Literal["untrusted", "on-failure", "on-request", "never"] | dict[Literal["granular"], Any]
)


class _Settings(Params):
    """What threads and turns have in common."""

    approval_policy: ApprovalPolicy | None = None
    approvals_reviewer: Literal["user", "auto_review", "guardian_subagent"] | None = None
    cwd: str | None = None
    model: str | None = None
    service_tier: str | None = None

    def table(self) -> dict[str, Any]:
        """The settings as in `config.toml`."""
        names = ("approval_policy", "approvals_reviewer", "model", "service_tier")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


class ThreadSettings(_Settings):
    base_instructions: str | None = None
    developer_instructions: str | None = None
    config: dict[str, Any] | None = None
    model_provider: str | None = None
    sandbox: SandboxMode | None = None

    def table(self) -> dict[str, Any]:
        table = nested_table(self.config or {}) | super().table()
        flags = {"model_provider": self.model_provider, "sandbox_mode": self.sandbox}
        return table | {name: value for name, value in flags.items() if value is not None}

    @property
    def texts(self) -> Mapping[str, str]:
        """Fields of a `Config`."""
        names = ("base_instructions", "developer_instructions")
        return {name: text for name in names if (text := getattr(self, name)) is not None}


class ThreadStart(ThreadSettings):
    ephemeral: bool = False


class ThreadResume(ThreadSettings):
    thread_id: str
    exclude_turns: bool = False


class ThreadFork(ThreadResume):
    ephemeral: bool = False


class OneThread(Params):
    thread_id: str


class ThreadRead(OneThread):
    include_turns: bool = False


class ThreadName(OneThread):
    name: str


class GoalSet(OneThread):
    objective: str | None = None
    status: Status | None = None
    token_budget: int | None = None


class ThreadList(Params):
    archived: bool = False
    cursor: str | None = None
    cwd: str | list[str] | None = None
    limit: int | None = Field(None, ge=0)
    model_providers: list[str] = []
    search_term: str = ""
    sort_direction: Literal["asc", "desc"] = "desc"
    sort_key: Literal["created_at", "updated_at", "recency_at"] = "created_at"
    source_kinds: list[str] = []


class ReadOnly(Params):
    type: Literal["readOnly"]


class WorkspaceWrite(Params):
    type: Literal["workspaceWrite"]
    writable_roots: list[str] = []
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


class FullAccess(Params):
    type: Literal["dangerFullAccess"]


class TextInput(Params):
    type: Literal["text"]
    text: str


class ImageInput(Params):
    type: Literal["image"]
    url: str


class LocalImageInput(Params):
    type: Literal["localImage"]
    path: str


class NamedInput(Params):
    type: Literal["skill", "mention"]
    name: str
    path: str


UserInput: TypeAlias = Annotated[
    TextInput | ImageInput | LocalImageInput | NamedInput, Field(discriminator="type")
]


class TurnStart(_Settings):
    thread_id: str
    input: list[UserInput]
    effort: str | None = None
    summary: Literal["auto", "concise", "detailed", "none"] | None = None
    output_schema: Any = None
    sandbox_policy: (
        Annotated[ReadOnly | WorkspaceWrite | FullAccess, Field(discriminator="type")] | None
    ) = None

    def table(self) -> dict[str, Any]:
        table = super().table()
        efforts = {
            "model_reasoning_effort": self.effort,
            "model_reasoning_summary": self.summary,
        }
        table |= {name: value for name, value in efforts.items() if value is not None}
        match self.sandbox_policy:
            case ReadOnly():
                table["sandbox_mode"] = "read-only"
            case FullAccess():
                table["sandbox_mode"] = "danger-full-access"
            case WorkspaceWrite() as policy:
                table["sandbox_mode"] = "workspace-write"
                table["sandbox_workspace_write"] = policy.model_dump(exclude={"type"})
            case None:
                pass
        return table


class TurnSteer(OneThread):
    expected_turn_id: str
    input: list[UserInput]


class TurnInterrupt(OneThread):
    turn_id: str


class ModelList(Params):
    cursor: str | None = None
    limit: int | None = Field(None, ge=0)
    include_hidden: bool = False


class Login(Params):
    type: Literal["apiKey"]
    api_key: str


class LoginCancel(Params):
    login_id: str
