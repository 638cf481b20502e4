"""A change bundle: what a run of `exec` changed, as data that `apply` checks and applies; docs/ci.md describes it.

The digest shows damage. The signature, made with a key that both sides have, shows that nobody else
has changed it.
"""

import hashlib
import hmac
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import CodexError, ConfigError, ExitCode, PatchError
from codex_py.patch.blobs import blob_name
from codex_py.protocol.patched_file import PatchedFile

_KEY: Final = "CODEX_PY_BUNDLE_KEY"
_MIN_KEY_BYTES: Final = 16
_MAX_BYTES: Final = 256 * 1024 * 1024
_FORMAT: Final = "codex-py change bundle"
_VERSION: Final = 1


class Bundle(NamedTuple):
    facts: Mapping[str, Any]
    """All fields but the diff and the proofs."""
    diff: bytes
    files: Mapping[str, tuple[str | None, str | None]]
    """The names of each file's git blobs before and after the run, by path; None if there was no
    file."""
    failure: str
    """The reason why the run was not accepted, as a sentence without a full stop; empty if it was
    accepted."""
    summary: str
    """A phrase that says who made it, when and on which commit."""

    def refuse_other_files(self, changes: Iterable[PatchedFile], root: Path) -> None:
        """Check the files that are to be changed.

        Raises:
            PatchError: of kind `match`: one is not as it was before the run.
            CodexError: the diff does something else than the list of files says.
        """
        after: dict[str, str | None] = {}
        for change in changes:
            name = str(change.path.relative_to(root))
            was, becomes = self.files.get(name, ("", ""))
            if _name(change.old, was) != was:
                reason = f"{name}: it is not as before the run that made the bundle; --3way may merge it"
                raise PatchError(reason, kind="match")
            after[name] = _name(change.new, becomes)
        listed = {name: becomes for name, (_, becomes) in self.files.items()}
        if after != listed:
            raise _refusal(
                "is damaged: its diff does something else than its list of files says"
            )


def bundle_key(environment: Mapping[str, str]) -> bytes:
    """The key of signatures; empty for none. Raises a `ConfigError` if it is too short."""
    key = os.fsencode(environment.get(_KEY, ""))
    if 0 < len(key) < _MIN_KEY_BYTES:
        raise ConfigError(f"{_KEY} is too short: it needs {_MIN_KEY_BYTES} bytes")
    return key


def written_bundle(
    facts: Mapping[str, Any],
    diff: bytes,
    key: bytes,
) -> str:
    """The text of a bundle. `facts`: the documented fields without the diff and the proofs. Raises
    a `CodexError` if it is too large."""
    text = diff.decode(errors="surrogateescape")
    fields = {"format": _FORMAT, "version": _VERSION, **facts, "diff": text}
    written = json.dumps({**fields, **_proofs(fields, key)}) + "\n"
    if len(written) > _MAX_BYTES:
        reason = f"the change is too large for a bundle: over {_MAX_BYTES >> 20} MB"
        raise CodexError(reason, code="bundle")
    return written


def read_bundle(data: bytes | str, key: bytes) -> Bundle:
    """Read a bundle.

    Raises:
        CodexError: it is damaged or was changed, is not signed with the `key`, or is of another
            version.
    """
    if len(data) > _MAX_BYTES:
        raise _refusal(f"is larger than {_MAX_BYTES >> 20} MB")
    try:
        fields: dict[str, Any] = json.loads(data)
        found = {name: fields.pop(name, None) for name in ("digest", "hmac")}
        if fields["version"] != _VERSION:
            raise _refusal(f"is of version {fields['version']!r}, and not {_VERSION}")
        proofs = _proofs(fields, key)
        if found["digest"] != proofs["digest"]:
            raise _refusal(
                "was damaged or changed after it was made: its digest is another one"
            )
        if key and not hmac.compare_digest(str(found["hmac"]), proofs["hmac"]):
            raise _refusal(f"is not signed with the key in {_KEY}")
        diff = fields.pop("diff").encode(errors="surrogateescape")
        files = {
            str(each["path"]): (each["before"], each["after"])
            for each in fields["files"]
        }
        gates = [
            str(gate["name"]) for gate in fields["gates"] if gate["status"] != "passed"
        ]
        failure = ""
        if gates:
            failure = (
                f"gates failed in the run that made the bundle: {', '.join(gates)}"
            )
        elif (code := fields.get("exit_code", 0)) != 0:
            failure = f"the run that made the bundle ended with exit code {code}"
        summary = "made by {model} in session {session} at {time}, on commit {base}"
        return Bundle(fields, diff, files, failure, summary.format_map(fields))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # Anybody can make a digest, of anything.
        raise _refusal("is damaged") from None


def _name(data: bytes | None, like: str | None) -> str | None:
    if data is None:
        return None
    return blob_name(data, len(str(like)))


def _proofs(fields: Mapping[str, Any], key: bytes) -> dict[str, str]:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    data = text.encode()
    proofs = {"digest": f"sha256:{hashlib.sha256(data).hexdigest()}"}
    if key:
        proofs["hmac"] = f"sha256:{hmac.digest(key, data, 'sha256').hex()}"
    return proofs


def _refusal(reason: str) -> CodexError:
    return CodexError(
        f"the change bundle {reason}", code="bundle", exit_code=ExitCode.INPUT
    )
