"""Finds the patch in a text, and its kind: an envelope of Codex's `apply_patch`, or a unified diff.

Each kind has its own modules that read it, so that an envelope does not load those for diffs.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from codex_py.errors import PatchError
from codex_py.patch.lines import BLANK, BOM

# These are compiled when they are first used: few patches need them.
_ENVELOPE = r"(?m)^\*\*\* Begin Patch[ \t\r]*$"
_UNIFIED = (
    r"(?m)^[ \t]*(?:diff --(?:git|cc|combined) \S|--- [^\n]*\n[ \t]*\+\+\+ |@@@ )"
)
_GIT_DIFF = rb"diff --git [!-~]|--- [^\n]*\n\+\+\+ "
_BARE_HUNK = r"(?m)^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@"
_BUNDLE = rb'\s*\{\s*"format"\s*:\s*"codex-py change bundle"'
_MESSAGE = r"(?i:From [0-9a-f]{40}\b|commit [0-9a-f]{40}\b|(?:From|Subject|Date|Message-Id|To): )"
"""The beginning of a mail, or of a commit as git shows it: its text may quote patches of any kind."""
_FENCE = r"(?m)^([ \t]*)(`{3,}|~{3,})([^\n]*)\n?"
"""A line with a fence: its indentation, its marks, and the rest of the line."""


class Detected(NamedTuple):
    """A patch that was found."""

    kind: Literal["envelope", "unified"]
    patch: str | bytes
    """An envelope is text. A diff is bytes if the input was bytes, and had nothing before the diff."""
    found: str
    """What was found, in words: `a unified diff in a fenced block`."""

    @property
    def text(self) -> str:
        """The patch as text. Bytes of a diff that are not UTF-8 are decoded with `surrogateescape`."""
        patch = self.patch
        if isinstance(patch, str):
            return patch
        return patch.decode(errors="surrogateescape")


def is_bundle(data: bytes | str) -> bool:
    """True if the data begins like a change bundle, whatever follows."""
    return isinstance(data, bytes) and re.match(_BUNDLE, data) is not None


def detect(data: bytes | str) -> Detected:
    """Find the one patch in a file or in a model's message.

    Raises:
        PatchError: of kind `empty` for blank input; of kind `parse` if there is no patch, if there
            are several, or if an envelope is not UTF-8.
    """
    if isinstance(data, bytes):
        if re.match(_GIT_DIFF, data) and b"*** Begin Patch" not in data:
            # Most files are diffs, and decoding one that is not all ASCII takes 5 ns a byte.
            return Detected("unified", data, "a unified diff")
        data = data.decode(errors="surrogateescape")
    return _detected(data)


def _detected(text: str) -> Detected:
    if not text.strip(BLANK + BOM):
        raise PatchError("No files were modified.", kind="empty")
    if text.lstrip(BLANK + BOM).startswith("*** Begin Patch"):
        return _envelope(text, "an envelope")
    has_envelope = "*** Begin Patch" in text and re.search(_ENVELOPE, text) is not None
    if not has_envelope and re.match(_UNIFIED, text):
        # The rest may be megabytes, and cannot change that.
        return Detected("unified", text, "a unified diff")
    outside, fenced = _fences(text)
    diffs = [block for block in fenced if re.search(_UNIFIED, block)]
    has_bare_diff = re.search(_UNIFIED, _without_envelope(outside)) is not None
    if has_envelope:
        return _beside_envelope(text, diffs, has_bare_diff=has_bare_diff)
    if has_bare_diff:
        return Detected("unified", text.removeprefix(BOM), "a unified diff")
    if len(diffs) > 1:
        raise _unclear("several fenced blocks have unified diffs in them")
    if diffs:
        return Detected("unified", diffs[0], "a unified diff in a fenced block")
    if re.search(_BARE_HUNK, text):
        raise _unclear("it has hunks, but no names of files (`---`, `+++`) before them")
    raise _unclear(
        "it has neither '*** Begin Patch' nor the headers of a unified diff in it"
    )


def _beside_envelope(
    text: str,
    diffs: Sequence[str],
    *,
    has_bare_diff: bool,
) -> Detected:
    """Decide for a text that has an envelope, and perhaps diffs too.

    Args:
        diffs: the fenced blocks that look like diffs.
        has_bare_diff: there is a diff outside of these blocks.
    """
    if has_bare_diff and re.match(_MESSAGE, text.lstrip(BLANK + BOM)):
        return Detected(
            "unified", text.removeprefix(BOM), "a unified diff behind a message"
        )
    # A block that looks like a diff may also be the envelope.
    has_fenced_diff = not all(re.search(_ENVELOPE, diff) for diff in diffs)
    if has_bare_diff or has_fenced_diff:
        raise _unclear("it has both an envelope and a unified diff in it")
    if len(re.findall(_ENVELOPE, text)) > 1:
        raise _unclear("it has several envelopes in it")
    return _envelope(text, "an envelope in other text")


def _unclear(reason: str) -> PatchError:
    return PatchError(f"no patch can be read from this: {reason}", kind="parse")


def _envelope(text: str, found: str) -> Detected:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PatchError(
            "an envelope must be UTF-8, and this is not", kind="parse"
        ) from error
    return Detected("envelope", text, found)


def _without_envelope(text: str) -> str:
    begin = re.search(_ENVELOPE, text)
    end = text.rfind("\n*** End Patch")
    if begin is None or end < 0:
        return text
    return text[: begin.start()] + text[end:]


def _fences(text: str) -> tuple[str, list[str]]:
    """Separate the text outside of fenced blocks from the blocks, which lose the indentation of their
    fence.

    A fence inside a diff never ends the block: each line of a diff is indented by one character more.
    """
    outside: list[str] = []
    blocks: list[str] = []
    opened: re.Match[str] | None = None
    at = 0
    for found in re.finditer(_FENCE, text):
        if opened is None:
            opened = found
        elif _closes(found, opened):
            outside.append(text[at : opened.start()])
            block = text[opened.end() : found.start()]
            blocks.append(
                re.sub(
                    f"^{opened[1]}",
                    "",
                    block,
                    flags=re.MULTILINE,
                )
            )
            at = found.end()
            opened = None
    outside.append(text[at:])
    return "".join(outside), blocks


def _closes(found: re.Match[str], opened: re.Match[str]) -> bool:
    """True if a fence ends the block that another one opened."""
    has_same_marks = found[2].startswith(opened[2])
    if found[1] != opened[1] or not has_same_marks:
        return False
    return not found[3].strip()
