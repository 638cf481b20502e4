"""Explains why a setting stops the start. Loaded only then."""

import json
from shlex import quote

from codex_py.config.check import Problem, dotted, remedy


def refusal(
    problem: Problem,
    where: str,
    *,
    may_accept: bool,
) -> str:
    """Say what is wrong with a setting, and how to go on.

    Args:
        where: the place of the setting, such as `/home/u/.codex/config.toml:3`.
        may_accept: True if the user may start without an unknown key.
    """
    name = dotted(problem.key)
    text = f"Error loading config.toml: {where}: `{name}` {problem.text}"
    if not problem.unknown:
        return text
    hint = remedy(problem.key)
    if hint is not None:
        text += f"; {hint}"
    if may_accept:
        words = quote(f"allow_unenforced=[{json.dumps(name)}]")
        text += f" A key that may protect is not ignored: to start without it, pass -c {words}"
    return text
