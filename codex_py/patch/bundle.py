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
    """All documented fields, except the diff, the digest and the signature."""
    diff: bytes
    files: Mapping[str, tuple[str | None, str | None]]
    """For each path, the names of the file's git blobs before and after the run; None where there
    was no file."""
    failure: str
    """The reason why the run was not accepted, as a sentence without a full stop; empty if it was
    accepted."""
    summary: str
    """A phrase that says who made it, when and on which commit."""

    def refuse_other_files(self, changes: Iterable[PatchedFile], root: Path) -> None:
        """Check that the changes of the diff are those of the list of files.

        Args:
            changes: what the diff does to the files as they are now.
            root: the directory that the paths of the bundle are relative to.

        Raises:
            PatchError: of kind `match`: one is not as it was before the run.
            CodexError: the diff does something else than the list of files says.
        """
        made: dict[str, str | None] = {}
        for change in changes:
            name = str(change.path.relative_to(root))
            before, after = self.files.get(name, ("", ""))
            if _blob_name(change.old, before) != before:
                reason = f"{name}: it is not as before the run that made the bundle; --3way may merge it"
                raise PatchError(reason, kind="match")
            made[name] = _blob_name(change.new, after)
        listed = {name: after for name, (_, after) in self.files.items()}
        if made != listed:
            raise _refusal(
                "is damaged: its diff does something else than its list of files says"
            )


def bundle_key(environment: Mapping[str, str]) -> bytes:
    """Return the key that signs bundles, from the environment; empty if none is set.

    Raises:
        ConfigError: the key is too short.
    """
    key = os.fsencode(environment.get(_KEY, ""))
    if 0 < len(key) < _MIN_KEY_BYTES:
        raise ConfigError(f"{_KEY} is too short: it needs {_MIN_KEY_BYTES} bytes")
    return key


def written_bundle(
    facts: Mapping[str, Any],
    diff: bytes,
    key: bytes,
) -> str:
    """Write a bundle: one line of JSON.

    Args:
        facts: the documented fields, without the diff, the digest and the signature.
        key: signs the bundle; empty makes one without a signature.

    Raises:
        CodexError: it is too large.
    """
    text = diff.decode(errors="surrogateescape")
    fields = {"format": _FORMAT, "version": _VERSION, **facts, "diff": text}
    fields |= _proofs(fields, key)
    written = json.dumps(fields) + "\n"
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
        _check_proofs(fields, key)
        diff = fields.pop("diff").encode(errors="surrogateescape")
        files = {
            str(each["path"]): (each["before"], each["after"])
            for each in fields["files"]
        }
        summary = "made by {model} in session {session} at {time}, on commit {base}"
        return Bundle(
            facts=fields,
            diff=diff,
            files=files,
            failure=_failure(fields),
            summary=summary.format_map(fields),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # A right digest does not promise the right fields: anybody can compute one.
        raise _refusal("is damaged") from None


def _check_proofs(fields: dict[str, Any], key: bytes) -> None:
    """Check the version, the digest and the signature; the latter two are taken out of `fields`."""
    digest = fields.pop("digest", None)
    signature = fields.pop("hmac", None)
    if fields["version"] != _VERSION:
        raise _refusal(f"is of version {fields['version']!r}, and not {_VERSION}")
    proofs = _proofs(fields, key)
    if digest != proofs["digest"]:
        raise _refusal(
            "was damaged or changed after it was made: its digest is another one"
        )
    if key and not hmac.compare_digest(str(signature), proofs["hmac"]):
        raise _refusal(f"is not signed with the key in {_KEY}")


def _failure(fields: Mapping[str, Any]) -> str:
    """Say why the run was not accepted; empty if it was."""
    failed = [
        str(gate["name"]) for gate in fields["gates"] if gate["status"] != "passed"
    ]
    if failed:
        return f"gates failed in the run that made the bundle: {', '.join(failed)}"
    code = fields.get("exit_code", 0)
    if code != 0:
        return f"the run that made the bundle ended with exit code {code}"
    return ""


def _blob_name(data: bytes | None, like: str | None) -> str | None:
    """Name the blob of these contents with the hash function of the name `like`."""
    if data is None:
        return None
    # The number of digits tells SHA-1 from SHA-256.
    digits = len(str(like))
    return blob_name(data, digits)


def _proofs(fields: Mapping[str, Any], key: bytes) -> dict[str, str]:
    """Compute the digest, and the signature if there is a key."""
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
