"""The files of requests for an approval: signed JSON, which a person answers."""

import hmac
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from codex_py.api.files import read_whole, written_whole
from codex_py.api.options import OptionError

_MAX_BYTES: Final = 64 << 20
_PURPOSE: Final = b"codex-py approval 2\n"
"""The key may sign other things too. The number is the version of the format."""


def write_request(
    request: Mapping[str, Any],
    folder: Path,
    key: bytes,
) -> Path:
    """Write a signed request.

    `request`: JSON with an `id` and the time at which it `expires`. Raises an `OSError` if the file
    cannot be written.
    """
    path = folder / f"approval-{request['id']}.json"
    with written_whole(path, replaces=False) as file:
        signed = {**request, "signature": _signature(request, key)}
        text = json.dumps(signed, indent=2)
        file.write(text.encode() + b"\n")
    return path


def read_request(path: Path, key: bytes) -> Mapping[str, Any]:
    """Read a request that is left.

    Raises:
        OptionError: it cannot be read, was changed, has another key, or is too old.
    """
    try:
        request = json.loads(read_whole(path, _MAX_BYTES))
        signature = str(request.pop("signature")).encode()
        is_signed = hmac.compare_digest(signature, _signature(request, key).encode())
    except OSError as error:
        raise OptionError(
            f"{path} cannot be read: {error.strerror or error}"
        ) from error
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise OptionError(f"{path} is not the file of an approval") from error
    if not is_signed:
        raise OptionError(f"{path} was changed, or was signed with another key")
    if datetime.now(UTC) >= datetime.fromisoformat(request["expires"]):
        raise OptionError(f"{path} expired at {request['expires']}")
    return request


def _signature(request: Mapping[str, Any], key: bytes) -> str:
    text = json.dumps(request, sort_keys=True, separators=(",", ":"))
    signed = _PURPOSE + text.encode()
    return hmac.new(key, signed, sha256).hexdigest()
