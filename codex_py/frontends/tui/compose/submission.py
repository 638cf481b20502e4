"""Prompts that the user sends off, and those that the model has not been told yet."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Submission:
    text: str
    """`[Image #1]`, … in it stand for the images."""
    images: Sequence[Path] = ()
    """Absolute."""
    queued: bool = False
    """To be sent when the turn is over, not into it."""


@dataclass(slots=True)
class Outbox:
    waiting: list[Submission] = field(default_factory=list[Submission])
    """Sent off before there was a session."""
    steered: list[Submission] = field(default_factory=list[Submission])
    """Sent into the running turn."""
    queue: list[Submission] = field(default_factory=list[Submission])
    """To be sent when the running turn is over."""
