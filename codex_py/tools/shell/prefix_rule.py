"""Rules that a model proposes: the first words of commands, which the user is asked to allow permanently."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from codex_py.execpolicy.decision import Decision, PrefixRule, Rules
from codex_py.execpolicy.place import BY_NAME, Place
from codex_py.execpolicy.wrappers import SHELLS, program_name, wrapped_commands

_GENERAL_PROGRAMS: Final = frozenset(
    (
        *SHELLS,
        *("csh", "fish", "tcsh", "pwsh", "powershell"),
        *("awk", "gawk", "bun", "deno", "lua", "node", "nodejs", "osascript", "perl", "php"),
        *("py", "pypy", "python", "ruby", "tclsh"),
        # They have so many subcommands that nobody means to allow all.
        *("apt", "apt-get", "aws", "brew", "bunx", "cargo", "docker", "gcloud", "gh", "git", "go"),
        *("kubectl", "make", "npm", "npx", "pip", "pipx", "pnpm", "podman", "rm", "ssh"),
        *("systemctl", "terraform", "uv", "uvx", "yarn"),
    )
)
"""Programs that can do anything, depending on their arguments: a rule needs more than the name and options."""

_WRAPPERS: Final = frozenset(
    (
        *("builtin", "busybox", "chroot", "command", "doas", "env", "eval", "exec", "find"),
        *("ionice", "nice", "nohup", "parallel", "script", "setsid", "source", "stdbuf", "su"),
        *("sudo", "time", "timeout", "unshare", "watch", "xargs"),
    )
)
"""Programs that run another one. A rule is judged by the inner one, if it can be identified."""


def offered_prefix(
    argv: Sequence[str], words: tuple[str, ...], rules: Rules, place: Place = BY_NAME
) -> tuple[str, ...] | None:
    """The words if the user may be offered a rule of them, else None.

    The rule has to be narrow and, with the existing rules, allow every command of this call; and the model must not be
    able to change a program or script among the words.
    """
    if not words or not all(word.isprintable() for word in words) or _is_broad(words):
        return None
    match = allowing(rules, words).decide(argv, place)
    files = (place.cwd / word for word in words)
    if any(file.is_file() and place.can_change(file) for file in files):
        return None
    if match is None or match.decision is not Decision.ALLOW:
        return None
    return words if any(rule.prefix == words for rule in match.matched) else None


def allowing(rules: Rules, prefix: Sequence[str]) -> Rules:
    """Add a rule that allows commands which begin with these words (at least one)."""
    rule = PrefixRule(tuple((word,) for word in prefix))
    return replace(rules, prefix_rules=(*rules.prefix_rules, rule))


def _is_broad(words: tuple[str, ...]) -> bool:
    """True if a rule of these words would allow nearly everything: `python -c`, `sudo -u x bash`."""
    name = program_name(words)
    if name in _WRAPPERS:
        wrapped = wrapped_commands(words) if name != "find" else []
        return not wrapped or any(_is_broad(inner) for inner in wrapped)
    if {name, name.rstrip("0123456789.")} & _GENERAL_PROGRAMS:
        first = words[2:3] if words[1:2] == ("-m",) else words[1:2]
        return not first or first[0].startswith("-")
    return not name
