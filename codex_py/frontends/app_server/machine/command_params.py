"""The params of the methods that run commands: `command/exec…`."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from codex_py.frontends.app_server.params import (
    FixedSandbox,
    Params,
    WorkspaceSandbox,
)
from codex_py.protocol.annotations import Plain
from codex_py.protocol.frozen import frozen

_MAX_CELLS: Final = 65_535


def _is_count(number: int) -> bool:
    return number >= 0


def _is_size(number: int) -> bool:
    return 0 <= number <= _MAX_CELLS


_COUNT: Final = "an integer of 0 or more"
_Count: TypeAlias = Annotated[int, Plain("count", _COUNT, (int,), _is_count)]
_SIZE: Final = "an integer from 0 to 65535"
_Size: TypeAlias = Annotated[int, Plain("size", _SIZE, (int,), _is_size)]


@frozen(kw_only=True)
class TerminalSize(Params):
    rows: _Size
    cols: _Size


@frozen(kw_only=True)
class OneCommand(Params):
    process_id: str


@frozen(kw_only=True)
class Exec(Params):
    command: list[str]
    process_id: str | None = None
    tty: bool = False
    stream_stdin: bool = False
    stream_stdout_stderr: bool = False
    output_bytes_cap: _Count | None = None
    disable_output_cap: bool = False
    timeout_ms: int | None = None
    disable_timeout: bool = False
    cwd: str | None = None
    """Relative to the server's folder, or absolute."""
    env: Mapping[str, str | None] | None = None
    """Changes to the variables; None removes one."""
    size: TerminalSize | None = None
    sandbox_policy: FixedSandbox | WorkspaceSandbox | None = None
    permission_profile: str | None = None

    @property
    def has_input(self) -> bool:
        return self.tty or self.stream_stdin

    @property
    def is_streamed(self) -> bool:
        """True if the client is told of the output while the command runs."""
        return self.tty or self.stream_stdout_stderr

    def table(self) -> dict[str, Any]:
        """The permissions as in `config.toml`."""
        if self.sandbox_policy is not None:
            return self.sandbox_policy.table()
        if self.permission_profile is not None:
            return {"default_permissions": self.permission_profile}
        return {}


@frozen(kw_only=True)
class Write(OneCommand):
    delta_base64: str | None = None
    close_stdin: bool = False


@frozen(kw_only=True)
class Resize(OneCommand):
    size: TerminalSize
