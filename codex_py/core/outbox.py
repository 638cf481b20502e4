"""What is to be told to the model with the next request."""

from codex_py.protocol.prompts import Note, UserPrompt


class Outbox:
    def __init__(self) -> None:
        self.steered: list[UserPrompt] = []
        """What the user said into the running turn."""
        self._notes: list[Note] = []

    def add(self, note: Note) -> None:
        self._notes.append(note)

    def take_notes(self) -> list[Note]:
        notes, self._notes = self._notes, []
        return notes

    def take_steered(self) -> list[UserPrompt]:
        steered, self.steered = self.steered, []
        return steered
