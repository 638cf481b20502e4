"""Reads `.rules` files, and adds rules to them.

    prefix_rule(
        pattern = ["git", ["push", "fetch"]],    # words; a list holds alternatives
        decision = "prompt",                     # allow (the default), prompt, forbidden
        justification = "talks to the server",
        match = ["git push origin"],             # tried when the file is loaded
        not_match = [["git", "status"]],
    )
    host_executable(name = "git", paths = ["/usr/bin/git"])

Source: the README of Codex's `execpolicy` crate, and how Codex 0.169 reads such files.
"""

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from codex_py.errors import ConfigError
from codex_py.execpolicy.decision import Rules
from codex_py.execpolicy.rule_calls import host_executable, network_rule, prefix_rule
from codex_py.execpolicy.starlark import read_calls
from codex_py.filesystem.own import lock, make_private

_NO_RULES = Rules()
_LOCK_TIMEOUT_S = 10.0


def parse_rules(text: str, source: str, base: Rules = _NO_RULES) -> Rules:
    """The rules of `base`, followed by those of one file; `source` is its name in errors.

    Raises:
        ConfigError: `Error loading rules: FILE:LINE:COLUMN: …`, and what is expected there; also if an
            example does not match as the file says.
    """
    calls = read_calls(text, source)
    executables = dict(base.host_executables)
    warnings = list(base.warnings)
    for call in calls:
        match call.name:
            case "prefix_rule":
                # Its examples need the executables of the whole file.
                continue
            case "host_executable":
                name, paths = host_executable(call)
                executables[name] = paths
            case "network_rule":
                warnings.append(network_rule(call))
            case _:
                expected = "prefix_rule, host_executable or network_rule"
                raise call.position.error(f"unknown rule {call.name!r}; expected {expected}")
    added = (prefix_rule(call, executables) for call in calls if call.name == "prefix_rule")
    return Rules((*base.prefix_rules, *added), executables, tuple(warnings))


def read_rules(files: Sequence[Path]) -> Rules:
    """The rules of these files, in this order.

    Raises:
        ConfigError: as for `parse_rules`, or a file cannot be read.
    """
    rules = _NO_RULES
    for file in files:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(file, error) from error
        rules = parse_rules(text, str(file), rules)
    return rules


def load_rules(folders: Sequence[Path]) -> Rules:
    """The rules of all `*.rules` files of the folders, of each folder by name; a missing folder has none.

    Raises:
        ConfigError: as for `read_rules`.
    """
    files: list[Path] = []
    for folder in folders:
        try:
            entries = sorted(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise _unreadable(folder, error) from error
        files += [entry for entry in entries if entry.suffix == ".rules" and entry.is_file()]
    return read_rules(files)


def allow_prefix(rules_folder: Path, prefix: Sequence[str]) -> None:
    """Add a rule to `default.rules` that allows commands which begin with these words, unless it is there.

    The file is locked and appended to as Codex does, which may do so at the same time: replacing the file
    would lose what Codex adds.

    Raises:
        OSError: the file cannot be read or written; it is as it was.
        ValueError: there are no words, or one is no Unicode text.
    """
    if not prefix:
        raise ValueError("a rule needs a word")
    words = ", ".join(json.dumps(word, ensure_ascii=False) for word in prefix)
    line = f'prefix_rule(pattern=[{words}], decision="allow")'.encode()
    make_private(rules_folder)
    path = rules_folder / "default.rules"
    with open(path, "a+b", buffering=0, opener=partial(os.open, mode=0o600)) as file:
        lock(file.fileno(), _LOCK_TIMEOUT_S)
        file.seek(0)
        content = file.readall()
        if line in (known.rstrip(b"\r") for known in content.split(b"\n")):
            return
        start = b"" if not content or content.endswith(b"\n") else b"\n"
        added = start + line + b"\n"
        try:
            if file.write(added) != len(added):
                raise OSError("the disk is full")
            os.fsync(file.fileno())
        except OSError:
            file.truncate(len(content))
            raise


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> ConfigError:
    reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
    return ConfigError(f"Error loading rules: {path}: {reason}")
