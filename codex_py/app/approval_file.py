"""The file of an approval that is waited for: signed, for one call of a session in one state, good for one answer."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

from codex_py.errors import OptionError
from codex_py.filesystem.private import make_private, written_whole
from codex_py.filesystem.reading import read_whole
from codex_py.protocol.frozen import frozen
from codex_py.protocol.tools import ToolCall

_MAX_BYTES: Final = 64 << 20
_PURPOSE: Final = b"codex-py approval 1\n"
"""The key may sign other things too."""


@frozen(kw_only=True)
class ApprovalFile:
    id: str
    session: str
    cwd: str
    call: Mapping[str, Any]
    """See `call_data`."""
    question: Mapping[str, Any]
    """See `ApprovalRequest.question`."""
    history: Mapping[str, Any]
    """See `history_data`."""
    expires: str

    def write(self, folder: Path, key: bytes) -> Path:
        """Raises an `OSError` if it cannot be written."""
        path, data = folder / f"approval-{self.id}.json", asdict(self)
        with written_whole(path, replaces=False) as file:
            signed = {**data, "signature": _signature(data, key)}
            file.write(json.dumps(signed, indent=2).encode() + b"\n")
        return path

    @classmethod
    def read(cls, path: Path, key: bytes) -> "ApprovalFile":
        """Raises `OptionError`: it cannot be read, was changed, has another key, or is too old."""
        try:
            data = json.loads(read_whole(path, _MAX_BYTES))
            signature = str(data.pop("signature")).encode()
            is_signed = hmac.compare_digest(signature, _signature(data, key).encode())
        except OSError as error:
            raise OptionError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise OptionError(f"{path} is not the file of an approval") from error
        if not is_signed:
            raise OptionError(f"{path} was changed, or was signed with another key")
        found = cls(**data)
        if datetime.now(UTC) >= datetime.fromisoformat(found.expires):
            raise OptionError(f"{path} expired at {found.expires}")
        return found

    def check(self, session: str, file: Path, cwd: Path, home: Path) -> None:
        """Raises `OptionError`: the session is another, in another folder, or not as it was; or this is used."""
        if self.session != session:
            raise OptionError(f"the approval is for session {self.session}, not {session}")
        if self.cwd != str(cwd):
            raise OptionError(f"the approval is for the folder {self.cwd}, not {cwd}")
        if self._mark(home).exists():
            raise OptionError(f"approval {self.id} was used already")
        with file.open("rb") as lines:
            if _digest(lines, self.history["bytes"]) != self.history["sha256"]:
                raise OptionError(f"{file} is not as it was when the approval was asked for")
            if not all(map(_is_event, lines)):
                raise OptionError("the session has gone on since the approval was asked for")

    def use(self, home: Path) -> None:
        """Raises `OptionError` if it was used before, by whichever process."""
        mark = self._mark(home)
        make_private(mark.parent)
        try:
            with written_whole(mark, replaces=False):
                pass
        except FileExistsError as error:
            raise OptionError(f"approval {self.id} was used already") from error

    def _mark(self, home: Path) -> Path:
        return home / "codex-py" / "approvals" / self.id


def call_data(call: ToolCall) -> Mapping[str, Any]:
    """The call as the model wrote it."""
    data = {"call_id": call.call_id, "tool": call.tool_name, **asdict(call.payload)}
    return json.loads(json.dumps(data))


def history_data(file: Path) -> Mapping[str, Any]:
    """The session file as it is. Only events may come behind it."""
    size = file.stat().st_size
    with file.open("rb") as lines:
        return {"bytes": size, "sha256": _digest(lines, size)}


def _digest(file: BinaryIO, size: int) -> str:
    """Of the first bytes, which are read."""
    digest = sha256()
    while size and (part := file.read(min(size, 1 << 20))):
        digest.update(part)
        size -= len(part)
    return digest.hexdigest()


def _signature(data: Mapping[str, Any], key: bytes) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, _PURPOSE + text.encode(), sha256).hexdigest()


def _is_event(line: bytes) -> bool:
    try:
        match json.loads(line):
            case {"type": "event_msg", "payload": {"type": kind}}:
                return kind != "thread_rolled_back"
            case _:
                return False
    except ValueError:
        return False
