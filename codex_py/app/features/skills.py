"""Skills: the model gets their list, and the texts of those that a prompt names. LIGHT.

The texts are kept through a compaction. The messages are those of Codex 0.171; the rules in
`instructions/skills.md` are our own.
"""

import re
from bisect import bisect
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
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
_QUOTED: Final = re.compile(
    r"^(~{3,})[^~\n]*\n.*?^\1~*[ \t]*$", re.DOTALL | re.MULTILINE
)
"""The text between lines of tildes: a diff, or the text of a reviewer."""
_MENTION: Final = re.compile(r"\$([\w:.-]+)")
_LIST: Final = "<skills_instructions>"
_NONE: Final = f"{_LIST}\nThe skills that were listed before are not there any more.\n</skills_instructions>"
_BODY: Final = "<skill>\n<name>"
_MOST_WARNINGS: Final = 50
_KEPT_PART_OF_WINDOW: Final = 10
_MAX_KEPT_BYTES: Final = 100_000
"""The limit of the texts that are kept through a compaction, some 25,000 tokens."""
_ORDER: Final = ("bundled", "project", "user", "plugin", "system")
_PERCENT_OF_WINDOW: Final = 2
_CHARACTERS_PER_TOKEN: Final = 4
_SHORTEST_DESCRIPTION: Final = 20
"""The characters of the shortest useful description."""


class SessionSkills:
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
            context=lambda occasion: self._list(thread, occasion),
            before_prompt=before_prompt,
            around_compaction=around_compaction,
        )

    def _find(self) -> Skills:
        """Find the skills as they are now: a session may write one."""
        skills = find_skills(self._setup.config, self._setup.environment)
        # A repository may have thousands of broken skills; `codex-py skills list` shows all
        # warnings.
        for warning in skills.warnings[:_MOST_WARNINGS]:
            self._setup.warn(warning)
        return skills

    def _list(self, thread: Thread, occasion: Occasion) -> Sequence[Note]:
        settings = self._setup.config.settings.skills
        if not settings.include_instructions:
            return ()
        window = thread.settings.context_window
        tokens = settings.max_context_tokens
        text = skill_list(self._find().found, tokens, window, self._setup.warn)
        if occasion == "resume":
            before = next(context_texts(_LIST, thread.items), None)
        else:
            before = None
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
        cwd = self._setup.config.cwd
        paths = {realpath(cwd / match[1]) for match in _LINK.finditer(prompt)}
        by_path = [
            skill for skill in skills.found if paths and realpath(skill.path) in paths
        ]
        names: set[str] = set()
        for match in _MENTION.finditer(_LINK.sub(" ", prompt)):
            name = match[1]
            # A name may stand at the end of a sentence.
            names |= {name, name.rstrip(":.-")}
        named = [named for name, named in skills.by_name().items() if name in names]
        for first, *others in named:
            if others:
                paths = " and ".join(str(skill.path) for skill in others)
                self._setup.warn(
                    f"There are {len(others) + 1} skills named {first.name!r}: ${first.name} means {first.path}, not"
                    f" {paths}. To name another one, write [${first.name}](PATH)."
                )
        by_name = [candidates[0] for candidates in named]
        chosen = dict.fromkeys([*in_order(by_path), *in_order(by_name)])
        return [note for skill in chosen for note in self._body(skill)]

    def _body(self, skill: Skill) -> Iterator[Note]:
        refuses = denials_of(self._setup.config.files).refuses
        if refuses(skill.path):
            # A command may have replaced the file.
            return
        try:
            text = read_skill(skill.path, skill.folder, refuses)
        except ConfigError as error:
            self._setup.warn(f"A skill cannot be used: {error}.")
            return
        head = f"{_BODY}{skill.name}</name>\n<path>{skill.path}</path>\n"
        yield Note(f"{head}{text}\n</skill>", "user")

    def _kept(self, thread: Thread) -> list[Note]:
        """Return the newest text of each skill in the history: of the latest skills that fit."""
        room = min(
            _MAX_KEPT_BYTES, 4 * thread.settings.context_window // _KEPT_PART_OF_WINDOW
        )
        kept: list[Note] = []
        for path, note in self._loaded(thread.items).items():
            size = len(note.text.encode())
            if size > room:
                self._setup.warn(
                    f"The compaction dropped the text of the skill {path}."
                )
                continue
            room -= size
            kept.append(note)
        return kept[::-1]

    def _loaded(self, items: Sequence[EncodedItem]) -> dict[str, Note]:
        """Return the texts of skills by path.

        The skills that the model was given come first, the latest first; then those that it read.
        """
        loaded: dict[str, Note] = {}
        for text in context_texts(_BODY, items):
            _, _, from_path = text.partition("<path>")
            path, _, _ = from_path.partition("</path>")
            loaded.setdefault(path, Note(text, "user"))
        calls = [item for item in items if b"SKILL.md" in item and b'_call"' in item]
        if not calls:
            return loaded
        for skill in self._find().found:
            path = str(skill.path)
            if path in loaded:
                continue
            mark = f"{skill.path.parent.name}/SKILL.md".encode()
            if any(mark in item for item in calls):
                loaded.update((path, note) for note in self._body(skill))
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
    if max_tokens is None:
        tokens = window * _PERCENT_OF_WINDOW // 100
    else:
        tokens = max_tokens
    room = tokens * _CHARACTERS_PER_TOKEN
    files = [_file(skill, roots) for skill in skills]
    bare = [
        len(f"- {skill.name}: {file}\n")
        for skill, file in zip(skills, files, strict=True)
    ]
    lengths = [len(skill.description) + 1 for skill in skills]
    count = len(skills)
    length = bisect(
        range(1, max(lengths) + 1),
        room - sum(bare),
        key=lambda most: sum(min(most, each) for each in lengths),
    )
    if length < min(_SHORTEST_DESCRIPTION, max(lengths)):
        length = 0
        count = bisect(list(accumulate(bare)), room)
    if length < max(lengths):
        warn(_shortened(tokens, length, len(skills) - count))
    if not count:
        return None
    lines = [
        f"- {skill.name}: {_short(skill.description, length)}{file}"
        for skill, file in zip(skills[:count], files, strict=False)
    ]
    table = [f"- `{name}` = `{path}`" for path, name in roots.items()]
    text = instruction_text("skills.md")
    before, _, after = text.partition("{skills}")
    # A description must not close the list, or its rest would read as our own words.
    told = "\n".join(lines).replace("</skills_instructions", "</ skills_instructions")
    return before.replace("{roots}", "\n".join(table)) + told + after


def in_order(skills: Iterable[Skill]) -> list[Skill]:
    """Sort the skills in the order of the list."""
    return sorted(
        skills, key=lambda skill: (_ORDER.index(skill.folder.origin), skill.name)
    )


def _file(skill: Skill, roots: dict[str, str]) -> str:
    return f"(file: {roots[str(skill.folder.path)]}/{skill.path.relative_to(skill.folder.path)})"


def _short(description: str, length: int) -> str:
    """Return the description after a blank, in at most this many characters."""
    if len(description) + 1 <= length:
        return f"{description} "
    if length:
        return f"{description[: length - 2].rstrip()}… "
    return ""


def _shortened(
    tokens: int,
    length: int,
    left_out: int,
) -> str:
    if length:
        done = f"were cut to {length} characters"
    else:
        done = "were left out"
    if left_out:
        if left_out == 1:
            skills = "1 skill was"
        else:
            skills = f"{left_out} skills were"
        done += f", and {skills} not listed at all"
    return (
        f"The list of skills is longer than {tokens} tokens: descriptions {done}. Set"
        " `skills.max_context_tokens` to list more, or disable skills with `[[skills.config]]`."
    )
