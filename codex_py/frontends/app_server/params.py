"""The params of the methods that are served, with the names of Codex 0.171.

A field that is not served is refused, because it may be a protection. Null, false and empty lists
and objects ask for nothing.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from codex_py.app.features.goals import Status
from codex_py.command_line.configuration import nested_table
from codex_py.protocol.approval import SandboxMode

_WITHOUT_EFFECT: Final = {
    "personality",
    "serviceName",
    "sessionStartSource",
    "threadSource",
    "clientUserMessageId",
    "turnTrigger",
    "rootTurnId",
    "parentTurnId",
    "useStateDbOnly",
    "refreshToken",
    "historyMode",
    "text_elements",
    "detail",
    "capabilities",
}
"""Fields that may be ignored: they only name, sort or decorate, and change nothing else."""
_SETTINGS: Final = {
    **{
        name: name
        for name in ("approval_policy", "approvals_reviewer", "model", "service_tier")
    },
    "model_provider": "model_provider",
    "sandbox": "sandbox_mode",
    "effort": "model_reasoning_effort",
    "summary": "model_reasoning_summary",
}
"""Maps fields to keys of `config.toml`."""


class Params(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _asked_for(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        own = {field.alias for field in cls.model_fields.values()}
        return {
            name: value
            for name, value in cast("dict[str, Any]", data).items()
            if value is not None and (name in own or not _asks_for_nothing(name, value))
        }


def _asks_for_nothing(name: str, value: Any) -> bool:
    """True if a field that is not served may be ignored, because it changes nothing.

    A number or a text always asks for something: 0 may be a limit.
    """
    return name in _WITHOUT_EFFECT or value is False or value in ([], {})


class ClientInfo(Params):
    name: str
    version: str
    title: str = ""


class Initialize(Params):
    client_info: ClientInfo


class Nothing(Params):
    pass


class OneThread(Params):
    thread_id: str


class _Settings(Params):
    approval_policy: (
        Literal["untrusted", "on-failure", "on-request", "never"]
        | dict[Literal["granular"], Any]
        | None
    ) = None
    approvals_reviewer: Literal["user", "auto_review", "guardian_subagent"] | None = (
        None
    )
    cwd: str | None = None
    model: str | None = None
    service_tier: str | None = None

    def table(self) -> dict[str, Any]:
        """The settings as in `config.toml`."""
        given = self.model_dump(include=set(_SETTINGS), exclude_none=True)
        return {_SETTINGS[name]: value for name, value in given.items()}


class ThreadStart(_Settings):
    base_instructions: str | None = None
    developer_instructions: str | None = None
    config: dict[str, Any] = {}
    model_provider: str | None = None
    sandbox: SandboxMode | None = None
    ephemeral: bool = False

    def table(self) -> dict[str, Any]:
        return nested_table(self.config) | super().table()

    @property
    def texts(self) -> dict[str, str]:
        """The texts, by fields of a `Config`."""
        names = {"base_instructions", "developer_instructions"}
        return self.model_dump(include=names, exclude_none=True)


class ThreadResume(ThreadStart, OneThread):
    exclude_turns: bool = False


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
    cursor: Annotated[str, Field(pattern=r"^\d{1,9}$")] = "0"
    cwd: str | list[str] | None = None
    limit: int = Field(25, ge=0)
    model_providers: list[str] = []
    search_term: str = ""
    sort_direction: Literal["asc", "desc"] = "desc"
    sort_key: Literal["created_at", "updated_at", "recency_at"] = "created_at"
    source_kinds: list[str] = []


class SandboxPolicy(Params):
    type: Literal["readOnly", "workspaceWrite", "dangerFullAccess"]
    writable_roots: list[str] = []
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False

    @model_validator(mode="after")
    def _is_possible(self) -> "SandboxPolicy":
        if self.type != "workspaceWrite" and self.model_dump(
            exclude={"type"}, exclude_defaults=True
        ):
            raise ValueError("networkAccess and the others belong to workspaceWrite")
        return self

    def table(self) -> dict[str, Any]:
        mode = {"readOnly": "read-only", "dangerFullAccess": "danger-full-access"}.get(
            self.type
        )
        if mode is not None:
            return {"sandbox_mode": mode}
        settings = self.model_dump(exclude={"type"})
        return {"sandbox_mode": "workspace-write", "sandbox_workspace_write": settings}


class TextInput(Params):
    type: Literal["text"]
    text: str


class ImageInput(Params):
    type: Literal["image"]
    url: str


class NamedInput(Params):
    type: Literal["localImage", "skill", "mention"]
    path: str
    name: str = ""


UserInput: TypeAlias = Annotated[
    TextInput | ImageInput | NamedInput, Field(discriminator="type")
]


class TurnStart(_Settings, OneThread):
    input: list[UserInput]
    effort: str | None = None
    summary: Literal["auto", "concise", "detailed", "none"] | None = None
    output_schema: Any = None
    sandbox_policy: SandboxPolicy | None = None

    def table(self) -> dict[str, Any]:
        return super().table() | (
            {} if self.sandbox_policy is None else self.sandbox_policy.table()
        )


class TurnSteer(OneThread):
    expected_turn_id: str
    input: list[UserInput]


class TurnInterrupt(OneThread):
    turn_id: str


class ModelList(Params):
    cursor: Annotated[str, Field(pattern=r"^\d{1,9}$")] = "0"
    limit: int = Field(1000, ge=1)
    include_hidden: bool = False


class Login(Params):
    type: Literal["apiKey"]
    api_key: str


class LoginCancel(Params):
    login_id: str
