"""The params of the methods that are served, with the names of Codex 0.171.

A field that is not served is refused, because it may be a limit that the client relies on. Null,
false, and empty lists and objects ask for nothing, so they are accepted in any field.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from codex_py.app.features.goals import Status
from codex_py.command_line.configuration import nested_table
from codex_py.protocol.annotations import CamelCase, Plain
from codex_py.protocol.approval import SandboxMode
from codex_py.protocol.checked import Mistake, read
from codex_py.protocol.frozen import frozen
from codex_py.protocol.ids import is_thread_id
from codex_py.protocol.settings import Mode

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
    "appBrand",
    "codexStreamlinedLogin",
    "useHostedLoginSuccessPage",
    "supportsLunaReserve",
    "historyMode",
    "text_elements",
    "detail",
    "capabilities",
}
"""Fields that may be ignored: they only name, sort or decorate, and change nothing else."""
_SETTINGS: Final = {
    "approval_policy": "approval_policy",
    "approvals_reviewer": "approvals_reviewer",
    "model": "model",
    "service_tier": "service_tier",
    "model_provider": "model_provider",
    "sandbox": "sandbox_mode",
    "effort": "model_reasoning_effort",
    "summary": "model_reasoning_summary",
}
"""Maps fields to keys of `config.toml`."""
_MAX_DIGITS: Final = 9


def _canonical(thread_id: str) -> str:
    """The id in lower case, as files and open threads have it; a name is unchanged."""
    if is_thread_id(thread_id):
        return thread_id.lower()
    return thread_id


ThreadId: TypeAlias = Annotated[
    str, Plain("string", "a string", (str,), make=_canonical)
]
"""The id of a thread, or its name."""


def _is_cursor(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def _is_count(number: int) -> bool:
    return number >= 0


def _is_limit(number: int) -> bool:
    return number > 0


_CURSOR: Final = "a number of up to nine digits in a string"
_Cursor: TypeAlias = Annotated[str, Plain("cursor", _CURSOR, (str,), _is_cursor)]
_COUNT: Final = "an integer of 0 or more"
Count: TypeAlias = Annotated[int, Plain("count", _COUNT, (int,), _is_count)]
"""A number of things, 0 or more."""
_LIMIT: Final = "an integer of more than 0"
_Limit: TypeAlias = Annotated[int, Plain("limit", _LIMIT, (int,), _is_limit)]
ParamsT = TypeVar("ParamsT", bound="Params")


@frozen(kw_only=True)
class Params(CamelCase):
    """The params of a method, or an object in them."""

    @staticmethod
    def prepared(data: Any) -> Any:
        """Change the data of a request before it is read, for instance where null has a meaning."""
        return data


def read_params(kind: type[ParamsT], data: Any) -> ParamsT:
    """Read the params of a request; None stands for none at all.

    Raises:
        WrongValue: the first mistake.
    """
    if data is None:
        data = {}
    found, mistakes = read(kind, kind.prepared(data), exact=True)
    for mistake in mistakes:
        if not _may_be_ignored(mistake):
            raise mistake.error()
    return found


def _may_be_ignored(mistake: Mistake) -> bool:
    """True for a field that is not served, if its value asks for nothing.

    A number or a text always asks for something: 0 may be a limit.
    """
    if mistake.reason != "unknown":
        return False
    if mistake.path[-1] in _WITHOUT_EFFECT:
        return True
    value = mistake.value
    if value is None or value is False:
        return True
    return value in ([], {})


@frozen(kw_only=True)
class ClientInfo(Params):
    name: str
    version: str
    title: str = ""


@frozen(kw_only=True)
class Initialize(Params):
    client_info: ClientInfo


@frozen(kw_only=True)
class Nothing(Params):
    pass


@frozen(kw_only=True)
class OneThread(Params):
    thread_id: ThreadId


@frozen(kw_only=True)
class _Settings(Params):
    """Settings of a thread, all of which may be left out."""

    approval_policy: (
        Literal["untrusted", "on-failure", "on-request", "never"]
        | dict[str, Any]
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
        given: dict[str, Any] = {}
        for name, key in _SETTINGS.items():
            value = getattr(self, name, None)
            if value is not None:
                given[key] = value
        return given


@frozen(kw_only=True)
class ThreadStart(_Settings):
    base_instructions: str | None = None
    developer_instructions: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model_provider: str | None = None
    sandbox: SandboxMode | None = None
    ephemeral: bool = False

    def table(self) -> dict[str, Any]:
        return nested_table(self.config) | _Settings.table(self)

    @property
    def texts(self) -> dict[str, str]:
        """The instructions that the client gives, by fields of a `Config`."""
        found: dict[str, str] = {}
        if self.base_instructions is not None:
            found["base_instructions"] = self.base_instructions
        if self.developer_instructions is not None:
            found["developer_instructions"] = self.developer_instructions
        return found


@frozen(kw_only=True)
class ThreadResume(ThreadStart):
    thread_id: ThreadId
    exclude_turns: bool = False


@frozen(kw_only=True)
class ThreadRead(OneThread):
    include_turns: bool = False


@frozen(kw_only=True)
class ThreadName(OneThread):
    name: str


@frozen(kw_only=True)
class GoalSet(OneThread):
    objective: str | None = None
    status: Status | None = None
    token_budget: int | None = None


@frozen(kw_only=True)
class ThreadList(Params):
    archived: bool = False
    cursor: _Cursor = "0"
    cwd: str | list[str] | None = None
    limit: Count = 25
    model_providers: list[str] = field(default_factory=list[str])
    search_term: str = ""
    sort_direction: Literal["asc", "desc"] = "desc"
    sort_key: Literal["created_at", "updated_at", "recency_at"] = "created_at"
    source_kinds: list[str] = field(default_factory=list[str])


@frozen(kw_only=True)
class FixedSandbox(Params):
    """A sandbox without settings of its own."""

    type: Literal["readOnly", "dangerFullAccess"]

    def table(self) -> dict[str, Any]:
        """The sandbox as in `config.toml`."""
        if self.type == "readOnly":
            return {"sandbox_mode": "read-only"}
        return {"sandbox_mode": "danger-full-access"}


@frozen(kw_only=True)
class WorkspaceSandbox(Params):
    type: Literal["workspaceWrite"]
    writable_roots: list[str] = field(default_factory=list[str])
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False

    def table(self) -> dict[str, Any]:
        """The sandbox as in `config.toml`."""
        settings = {
            "writable_roots": self.writable_roots,
            "network_access": self.network_access,
            "exclude_tmpdir_env_var": self.exclude_tmpdir_env_var,
            "exclude_slash_tmp": self.exclude_slash_tmp,
        }
        return {"sandbox_mode": "workspace-write", "sandbox_workspace_write": settings}


@frozen(kw_only=True)
class TextInput(Params):
    type: Literal["text"]
    text: str


@frozen(kw_only=True)
class ImageInput(Params):
    type: Literal["image"]
    url: str


@frozen(kw_only=True)
class NamedInput(Params):
    """A file of the user's: an image, a skill, or a file that is only mentioned."""

    type: Literal["localImage", "skill", "mention"]
    path: str
    name: str = ""


UserInput: TypeAlias = TextInput | ImageInput | NamedInput


@frozen(kw_only=True)
class ModeSettings:
    """The settings of a mode, whose names have underscores in the protocol."""

    model: str | None = None
    reasoning_effort: str | None = None


@frozen(kw_only=True)
class CollaborationMode(Params):
    mode: Mode
    settings: ModeSettings = field(default_factory=ModeSettings)


@frozen(kw_only=True)
class ThreadSettings(_Settings):
    """The settings of a thread that may change with each turn."""

    thread_id: ThreadId
    effort: str | None = None
    summary: Literal["auto", "concise", "detailed", "none"] | None = None
    sandbox_policy: FixedSandbox | WorkspaceSandbox | None = None
    collaboration_mode: CollaborationMode | None = None

    def table(self) -> dict[str, Any]:
        settings = _Settings.table(self)
        if self.sandbox_policy is not None:
            settings |= self.sandbox_policy.table()
        if self.collaboration_mode is not None:
            # As in Codex, those of the mode win.
            own = self.collaboration_mode.settings
            if own.model is not None:
                settings["model"] = own.model
            if own.reasoning_effort is not None:
                settings["model_reasoning_effort"] = own.reasoning_effort
        return settings

    @property
    def mode(self) -> Mode | None:
        """The mode of the next turns; None for that of the turn before."""
        if self.collaboration_mode is None:
            return None
        return self.collaboration_mode.mode


@frozen(kw_only=True)
class TurnStart(ThreadSettings):
    input: list[UserInput]
    output_schema: Any = None


@frozen(kw_only=True)
class BackgroundTerminals(OneThread):
    cursor: _Cursor = "0"
    limit: Count = 25


@frozen(kw_only=True)
class BackgroundTerminal(OneThread):
    process_id: str


@frozen(kw_only=True)
class TurnSteer(OneThread):
    expected_turn_id: str
    input: list[UserInput]


@frozen(kw_only=True)
class TurnInterrupt(OneThread):
    turn_id: str


@frozen(kw_only=True)
class ModelList(Params):
    cursor: _Cursor = "0"
    limit: _Limit = 1000
    include_hidden: bool = False


@frozen(kw_only=True)
class RateLimitsRead(Params):
    exclude_reset_credit_details: bool = False


@frozen(kw_only=True)
class AccountRead(Params):
    refresh_token: bool = False


@frozen(kw_only=True)
class Login(Params):
    type: Literal["apiKey", "chatgpt", "chatgptDeviceCode"]
    api_key: str = ""


@frozen(kw_only=True)
class LoginCancel(Params):
    login_id: str
