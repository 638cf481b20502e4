"""Adds a rule to a file of rules, without loading the parser of such files."""

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from codex_py.filesystem.private import lock, make_private

_LOCK_TIMEOUT_S = 10.0


def allow_prefix(rules_folder: Path, prefix: Sequence[str]) -> None:
    """Add a rule to `default.rules` that allows commands with this prefix. A rule that is already
    there is not added again.

    The file is locked and appended to, as Codex does it. Replacing the file would lose rules that
    Codex adds at the same time.

    Raises:
        OSError: the file cannot be read or written; it is unchanged.
        ValueError: there are no words, or a word is not Unicode text.
    """
    if not prefix:
        raise ValueError("a rule needs a word")
    quoted = [json.dumps(word, ensure_ascii=False) for word in prefix]
    words = ", ".join(quoted)
    line = f'prefix_rule(pattern=[{words}], decision="allow")'.encode()
    make_private(rules_folder)
    path = rules_folder / "default.rules"
    opener = partial(os.open, mode=0o600)
    with open(path, "a+b", buffering=0, opener=opener) as file:
        lock(file.fileno(), _LOCK_TIMEOUT_S)
        file.seek(0)
        content = file.readall()
        known = [each.rstrip(b"\r") for each in content.split(b"\n")]
        if line in known:
            return
        added = line + b"\n"
        if content and not content.endswith(b"\n"):
            added = b"\n" + added
        try:
            if file.write(added) != len(added):
                raise OSError("the disk is full")
            os.fsync(file.fileno())
        except OSError:
            file.truncate(len(content))
            raise
