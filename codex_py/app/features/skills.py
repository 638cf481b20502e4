"""Skills: the model gets their list, and the texts of those that a prompt names. LIGHT.

The texts are kept through a compaction. The messages are those of Codex 0.171; the rules in
`instructions/skills.md` are our own.
"""

import re
from bisect import bisect
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate
from os.path import realpath
from typing import Final

from codex_py.app.options import SessionSetup
from codex_py.config.skills import Skill, Skills, find_skills, read_skill
from codex_py.errors import ConfigError
from codex_py.filesystem.denials import denials_of
from codex_py.instructions import instruction_text
from codex_py.protocol.extension import Compaction, Extension, Occasion, Thread
from codex_py.protocol.messages import EncodedItem
from codex_py.protocol.prompts import Note, UserPrompt, context_texts

_LINK: Final = re.compile(r"\[\$[^\]\n]{0,200}\]\(<?([^)>\x00-\x1f]{1,4096})>?\)")
"""A skill that is named by its path: `[$name](PATH)`."""
_QUOTED: Final = re.compile(
    r"^(~{3,})[^~\n]*\n.*?^\1~*[ \t]*$", re.DOTALL | re.MULTILINE
)
"""The text between lines of tildes: a diff, or the text of a reviewer."""
_MENTION: Final = re.compile(r"\$([\w:.-]+)")
_LIST: Final = "<skills_instructions>"
_NONE: Final = f"{_LIST}\nThe skills that were listed before are not there any more.\n</skills_instructions>"
_BODY: Final = "<skill>\n<name>"
_MAX_WARNINGS: Final = 50
_MAX_KEPT_BYTES: Final = 100_000
"""The limit of the texts that are kept through a compaction, some 25,000 tokens."""
_KEPT_SHARE: Final = 10
"""The texts that are kept take at most a tenth of the context window."""
_ORDER: Final = ("bundled", "project", "user", "plugin", "system")
"""The places of skills, in the order of the list."""
_PERCENT_OF_WINDOW: Final = 2
_CHARACTERS_PER_TOKEN: Final = 4
_SHORTEST_DESCRIPTION: Final = 20
"""The characters of the shortest useful description."""


class SessionSkills:
    """The feature of the skills of a session."""

    def __init__(self, setup: SessionSetup) -> None:
        self._setup = setup

    def __call__(self, thread: Thread) -> Extension:
        async def before_prompt(prompt: UserPrompt) -> Sequence[Note]:
            if "$" in prompt.text:
                return self._mentioned(_QUOTED.sub("", prompt.text))
            return ()

        @asynccontextmanager
        async def around_compaction(compaction: Compaction) -> AsyncGenerator[None]:
            for note in self._kept(thread):
                compaction.keep(note)
            yield

        return Extension(
            context=lambda occasion: self._list_notes(thread, occasion),
            before_prompt=before_prompt,
            around_compaction=around_compaction,
        )

    def _find(self) -> Skills:
        """Find the skills as they are now: a session may write one."""
        skills = find_skills(self._setup.config, self._setup.environment)
        # A repository may have thousands of broken skills; `codex-py skills list` shows all
        # warnings.
        for warning in skills.warnings[:_MAX_WARNINGS]:
            self._setup.warn(warning)
        return skills

    def _list_notes(
        self,
        thread: Thread,
        occasion: Occasion,
    ) -> Sequence[Note]:
        """Return the list of skills, unless the history of a resumed session has the same one."""
        settings = self._setup.config.settings.skills
        if not settings.include_instructions:
            return ()
        window = thread.settings.context_window
        max_tokens = settings.max_context_tokens
        skills = self._find().found
        text = skill_list(skills, max_tokens, window, self._setup.warn)
        before = None
        if occasion == "resume":
            before = next(context_texts(_LIST, thread.items), None)
        if text is None and before is not None:
            text = _NONE
        if text is None or text == before:
            return ()
        return [Note(text)]

    def _mentioned(self, prompt: str) -> list[Note]:
        """Return the texts of the skills that a prompt names.

        Those named by path come first, then those named by name.
        """
        skills = self._find()
        by_path = self._named_by_path(prompt, skills)
        by_name = self._named_by_name(_LINK.sub(" ", prompt), skills)
        chosen = dict.fromkeys([*in_order(by_path), *in_order(by_name)])
        notes: list[Note] = []
        for skill in chosen:
            note = self._body(skill)
            if note is not None:
                notes.append(note)
        return notes

    def _named_by_path(
        self,
        prompt: str,
        skills: Skills,
    ) -> list[Skill]:
        cwd = self._setup.config.cwd
        links = _LINK.finditer(prompt)
        paths = {realpath(cwd / link[1]) for link in links}
        if not paths:
            return []
        return [skill for skill in skills.found if realpath(skill.path) in paths]

    def _named_by_name(
        self,
        prompt: str,
        skills: Skills,
    ) -> list[Skill]:
        """Return the first skill of each name in the prompt; warns if there are others."""
        names: set[str] = set()
        for match in _MENTION.finditer(prompt):
            name = match[1]
            # A name may stand at the end of a sentence.
            names |= {name, name.rstrip(":.-")}
        chosen: list[Skill] = []
        for name, (first, *others) in skills.by_name().items():
            if name not in names:
                continue
            chosen.append(first)
            if others:
                paths = " and ".join(str(skill.path) for skill in others)
                self._setup.warn(
                    f"There are {len(others) + 1} skills named {first.name!r}: ${first.name} means {first.path}, not"
                    f" {paths}. To name another one, write [${first.name}](PATH)."
                )
        return chosen

    def _body(self, skill: Skill) -> Note | None:
        """Return the message with the text of a skill; None if it cannot be read."""
        refuses = denials_of(self._setup.config.files).refuses
        if refuses(skill.path):
            # A command may have replaced the file.
            return None
        try:
            text = read_skill(skill.path, skill.folder, refuses)
        except ConfigError as error:
            self._setup.warn(f"A skill cannot be used: {error}.")
            return None
        head = f"{_BODY}{skill.name}</name>\n<path>{skill.path}</path>\n"
        return Note(f"{head}{text}\n</skill>", "user")

    def _kept(self, thread: Thread) -> list[Note]:
        """Return the newest text of each skill in the history, the latest skill last.

        If not all of them fit, the latest ones are kept, and the user is told of the others.
        """
        window_bytes = thread.settings.context_window * _CHARACTERS_PER_TOKEN
        room = min(_MAX_KEPT_BYTES, window_bytes // _KEPT_SHARE)
        latest_first: list[Note] = []
        for path, note in self._loaded(thread.items).items():
            size = len(note.text.encode())
            if size > room:
                self._setup.warn(
                    f"The compaction dropped the text of the skill {path}."
                )
                continue
            room -= size
            latest_first.append(note)
        return latest_first[::-1]

    def _loaded(self, items: Sequence[EncodedItem]) -> dict[str, Note]:
        """Return the texts of skills by path.

        The skills that the model was given come first, the latest first; then those that it read.
        """
        loaded: dict[str, Note] = {}
        for text in context_texts(_BODY, items):
            _, _, from_path = text.partition("<path>")
            path, _, _ = from_path.partition("</path>")
            loaded.setdefault(path, Note(text, "user"))
        reads = [item for item in items if b"SKILL.md" in item and b'_call"' in item]
        if not reads:
            return loaded
        for skill in self._find().found:
            path = str(skill.path)
            if path in loaded:
                continue
            mark = f"{skill.path.parent.name}/SKILL.md".encode()
            was_read = any(mark in item for item in reads)
            note = self._body(skill) if was_read else None
            if note is not None:
                loaded[path] = note
        return loaded


def skill_list(
    skills: Sequence[Skill],
    max_tokens: int | None,
    window: int,
    warn: Callable[[str], None],
) -> str | None:
    """Return the list for the model, in the form of Codex 0.171; None if there are no skills.

    Args:
        max_tokens: the limit for all lines of skills; None: 2 % of the context window, which is
            `window` tokens.
        warn: called with a sentence about skills that did not fit.
    """
    skills = in_order(skill for skill in skills if skill.is_listed)
    if not skills:
        return None
    paths = sorted({str(skill.folder.path) for skill in skills})
    roots = {path: f"r{number}" for number, path in enumerate(paths)}
    files = [_file(skill, roots) for skill in skills]
    if max_tokens is None:
        max_tokens = window * _PERCENT_OF_WINDOW // 100
    count, length = _fitting(skills, files, max_tokens * _CHARACTERS_PER_TOKEN)
    if any(length < _described(skill) for skill in skills):
        warn(_shortening(max_tokens, length, len(skills) - count))
    if not count:
        return None
    lines = [
        f"- {skill.name}: {_short(skill.description, length)}{file}"
        for skill, file in zip(skills[:count], files, strict=False)
    ]
    # A description must not close the list, or its rest would read as our own words.
    listed = "\n".join(lines).replace("</skills_instructions", "</ skills_instructions")
    table = "\n".join(f"- `{name}` = `{path}`" for path, name in roots.items())
    before, _, after = instruction_text("skills.md").partition("{skills}")
    return before.replace("{roots}", table) + listed + after


def _fitting(
    skills: Sequence[Skill], files: Sequence[str], room: int
) -> tuple[int, int]:
    """Fit a list into this many characters.

    Descriptions are cut first, all to the same length. If this length would be below
    `_SHORTEST_DESCRIPTION`, there are no descriptions; and if the list is still too long, its last
    skills are left out.

    Returns the number of skills in the list, and the length to which their descriptions are cut,
    including the blank after each; 0 for none.
    """
    bare = [
        len(f"- {skill.name}: {file}\n")
        for skill, file in zip(skills, files, strict=True)
    ]
    described = [_described(skill) for skill in skills]

    def size(length: int) -> int:
        return sum(min(length, each) for each in described)

    longest = max(described)
    room_for_descriptions = room - sum(bare)
    length = bisect(range(1, longest + 1), room_for_descriptions, key=size)
    if length < min(_SHORTEST_DESCRIPTION, longest):
        return bisect(list(accumulate(bare)), room), 0
    return len(skills), length


def _described(skill: Skill) -> int:
    """Count the characters of a description and the blank after it."""
    return len(skill.description) + 1


def in_order(skills: Iterable[Skill]) -> list[Skill]:
    """Sort the skills in the order of the list."""

    def place(skill: Skill) -> tuple[int, str]:
        return _ORDER.index(skill.folder.origin), skill.name

    return sorted(skills, key=place)


def _file(skill: Skill, roots: dict[str, str]) -> str:
    """Name the file of a skill, below the short name of its root."""
    folder = skill.folder.path
    return f"(file: {roots[str(folder)]}/{skill.path.relative_to(folder)})"


def _short(description: str, length: int) -> str:
    """Return the description and a blank, in at most this many characters; empty if 0."""
    if len(description) + 1 <= length:
        return f"{description} "
    if length:
        return f"{description[: length - 2].rstrip()}… "
    return ""


def _shortening(max_tokens: int, length: int, left_out: int) -> str:
    """Say what was left out of the list, and what the user can do about it."""
    what = f"were cut to {length} characters" if length else "were left out"
    if left_out == 1:
        what += ", and 1 skill was not listed at all"
    elif left_out:
        what += f", and {left_out} skills were not listed at all"
    return (
        f"The list of skills is longer than {max_tokens} tokens: descriptions {what}. Set"
        " `skills.max_context_tokens` to list more, or disable skills with `[[skills.config]]`."
    )
