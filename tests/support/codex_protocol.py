"""The schemas of Codex's app server, as the released program writes them."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema

from tests.support.codex import CODEX

Message = Mapping[str, Any]
_ANSWERS: Final = {
    "initialize": "v1/InitializeResponse",
    "account/logout": "v2/LogoutAccountResponse",
    "account/rateLimits/read": "v2/GetAccountRateLimitsResponse",
    "config/batchWrite": "v2/ConfigWriteResponse",
    "config/mcpServer/reload": "v2/McpServerRefreshResponse",
    "config/value/write": "v2/ConfigWriteResponse",
    "configRequirements/read": "v2/ConfigRequirementsReadResponse",
    "fuzzyFileSearch": "FuzzyFileSearchResponse",
    "fuzzyFileSearch/sessionStart": "FuzzyFileSearchSessionStartResponse",
    "fuzzyFileSearch/sessionStop": "FuzzyFileSearchSessionStopResponse",
    "fuzzyFileSearch/sessionUpdate": "FuzzyFileSearchSessionUpdateResponse",
    "modelProvider/default/set": "v2/ConfigWriteResponse",
}
"""The schemas of answers that are not named as the params of their method."""


def check_answer(method: str, result: Any) -> None:
    """Compare an answer with the schema of Codex. Raises a `ValidationError` if it is wrong."""
    name = _ANSWERS.get(method)
    if name is None:
        params = _branches("ClientRequest")[method]["properties"]["params"]["$ref"]
        title = params.rpartition("/")[2].removesuffix("Params")
        name = f"v2/{title}Response"
    _validator(name).validate(result)


def check_message(message: Message) -> None:
    """Compare a notification or a request of the server with the schema of Codex.

    Raises a `ValidationError` if it is wrong, and an `AssertionError` if Codex has none of this
    method.
    """
    kind = "ServerRequest" if "id" in message else "ServerNotification"
    method = message["method"]
    assert method in _branches(kind), f"Codex has no {kind} {method!r}"
    _validator_of_message(kind, method).validate(message)


@cache
def _folder() -> Path:
    """The folder of the schemas. It is written once for each process of the tests."""
    assert CODEX is not None
    kept = tempfile.TemporaryDirectory(prefix="codex-schemas-")
    _kept.append(kept)
    subprocess.run(
        [
            CODEX,
            "app-server",
            "generate-json-schema",
            "--experimental",
            "--out",
            kept.name,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    return Path(kept.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
"""The folder, which is removed when the process ends."""


@cache
def _schema(name: str) -> dict[str, Any]:
    return json.loads((_folder() / f"{name}.json").read_text("utf-8"))


@cache
def _validator(name: str) -> Any:
    return jsonschema.Draft7Validator(_schema(name))


@cache
def _validator_of_message(kind: str, method: str) -> Any:
    branch = _branches(kind)[method]
    definitions = _schema(kind)["definitions"]
    return jsonschema.Draft7Validator({**branch, "definitions": definitions})


@cache
def _branches(name: str) -> dict[str, dict[str, Any]]:
    """The schemas of messages by their methods."""
    found: dict[str, dict[str, Any]] = {}
    for branch in _schema(name)["oneOf"]:
        (method,) = branch["properties"]["method"]["enum"]
        found[method] = branch
    return found
