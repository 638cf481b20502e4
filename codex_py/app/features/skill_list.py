"""The list of skills in the context, in the form of Codex 0.169 and within a number of tokens. LIGHT."""

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Final

from codex_py.config.skills import Skill
from codex_py.instructions import instruction_text

_ORDER: Final = ("bundled", "project", "user", "plugin", "system")
_PERCENT_OF_WINDOW: Final = 2
_CHARACTERS_PER_TOKEN: Final = 4
_SHORTEST_DESCRIPTION: Final = 20
"""Characters: what is shorter tells nothing."""


def skill_list(
    skills: Sequence[Skill], max_tokens: int | None, window: int, warn: Callable[[str], None]
) -> str | None:
    """The text for the model; None if there are no skills. `warn` is told what did not fit.

    Args:
        max_tokens: for all lines of skills; None: 2 % of the context window, which is `window` tokens.
    """
    skills = in_order(skill for skill in skills if skill.is_listed)
    if not skills:
        return None
    paths = sorted({str(skill.folder.path) for skill in skills})
    roots = {path: f"r{number}" for number, path in enumerate(paths)}
    tokens = window * _PERCENT_OF_WINDOW // 100 if max_tokens is None else max_tokens
    room = tokens * _CHARACTERS_PER_TOKEN
    files = [_file(skill, roots) for skill in skills]
    bare = [len(f"- {skill.name}: {file}\n") for skill, file in zip(skills, files, strict=True)]
    lengths = [len(skill.description) + 1 for skill in skills]
    count = len(skills)
    length = bisect(
        range(1, max(lengths) + 1),
        room - sum(bare),
        key=lambda most: sum(min(most, each) for each in lengths),
    )
    if length < min(_SHORTEST_DESCRIPTION, max(lengths)):
        length, count = 0, bisect(list(accumulate(bare)), room)
    _warn(
        warn,
        tokens,
        length,
        shortened=any(n > length for n in lengths),
        left_out=len(skills) - count,
    )
    if not count:
        return None
    lines = [
        f"- {skill.name}: {_short(skill.description, length)}{file}"
        for skill, file in zip(skills[:count], files, strict=False)
    ]
    table = [f"- `{name}` = `{path}`" for path, name in roots.items()]
    text = instruction_text("skills.md")
    before, _, after = text.partition("{skills}")
    # A description must not end the list: the rest of it would read as our own words.
    told = "\n".join(lines).replace("</skills_instructions", "</ skills_instructions")
    return before.replace("{roots}", "\n".join(table)) + told + after


def in_order(skills: Iterable[Skill]) -> list[Skill]:
    """The skills in the order of the list."""
    return sorted(skills, key=lambda skill: (_ORDER.index(skill.folder.origin), skill.name))


def _file(skill: Skill, roots: dict[str, str]) -> str:
    return f"(file: {roots[str(skill.folder.path)]}/{skill.path.relative_to(skill.folder.path)})"


def _short(description: str, length: int) -> str:
    """The description and a blank, in at most this many characters."""
    if len(description) + 1 <= length:
        return f"{description} "
    return f"{description[: length - 2].rstrip()}… " if length else ""


def _warn(
    warn: Callable[[str], None], tokens: int, length: int, *, shortened: bool, left_out: int
) -> None:
    if not shortened:
        return
    done = f"were cut to {length} characters" if length else "were left out"
    if left_out:
        skills = "1 skill was" if left_out == 1 else f"{left_out} skills were"
        done += f", and {skills} not listed at all"
    warn(
        f"The list of skills is longer than {tokens} tokens: descriptions {done}. Set"
        " `skills.max_context_tokens` to list more, or disable skills with `[[skills.config]]`."
    )
