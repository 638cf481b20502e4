"""Skills that a prompt mentions."""

from codex_py.app.options import SessionSetup
from codex_py.config.skills import find_skills, skill_message
from codex_py.protocol.prompts import Note


def mentioned(setup: SessionSetup, prompt: str) -> list[Note]:
    """Notes with the skills that a prompt mentions as `$name`."""
    skills = find_skills(setup.config, setup.environment)
    for warning in skills.warnings:
        setup.warn(warning)
    return [Note(skill_message(skill), "user") for skill in skills.mentioned(prompt)]
