"""`notify`: starts a program of the user after each completed turn, as Codex does. LIGHT.

Part of the composition root. The last argument of the program is a JSON object with the turn, its prompts and its
answer.
"""

import json
import os
import threading
from collections.abc import Mapping, Sequence

from codex_py.app.options import SessionSetup
from codex_py.app.user_programs import UserPrograms, user_programs
from codex_py.protocol.event_items import AgentMessage
from codex_py.protocol.events import Event, ItemCompleted, TurnCompleted, TurnStarted
from codex_py.protocol.extension import Extension, Thread


def program_problem(
    argv: Sequence[str], environment: Mapping[str, str], programs: UserPrograms
) -> str | None:
    """Return a warning if the program cannot be found, or another one than in a shell; else None."""
    try:
        found = programs.find(argv[0], environment, programs.cwd())
    except FileNotFoundError as error:
        return (
            f"The program {argv[0]!r} of `notify` cannot be started: {error.strerror}."
        )
    if not os.access(programs.cwd() / found, os.X_OK):
        return f"The program {argv[0]!r} of `notify` cannot be found."
    note = programs.passed_over_note(argv[0], environment, "`notify`")
    if note is None:
        return None
    return f"{note}."


_MAX_ARGUMENT = 120_000
"""The bytes of the argument. Linux takes 131,071 in one argument."""
_MAX_TEXT = 4_000
"""The characters of each text if all texts together are too long."""


class TurnNotifier:
    """Starts the program. The session does not wait for it, and discards its output."""

    def __init__(self, setup: SessionSetup) -> None:
        assert setup.config.notify
        self._argv = setup.config.notify
        self._cwd = setup.config.cwd
        self._client = setup.options.originator
        self._environment = setup.environment
        self._programs = user_programs(
            setup.config, setup.environment, setup.options.add_dirs
        )
        problem = program_problem(self._argv, self._environment, self._programs)
        if problem is not None:
            setup.warn(problem)

    def __call__(self, thread: Thread) -> Extension:
        prompt_count = 0
        answer: str | None = None

        def sink(event: Event) -> None:
            nonlocal prompt_count, answer
            match event:
                case TurnStarted():
                    prompt_count = len(thread.past_prompts())
                    answer = None
                case ItemCompleted(AgentMessage(text=text)):
                    answer = text
                case TurnCompleted() if thread.turn is not None:
                    prompts = [past.prompt.text for past in thread.past_prompts()]
                    # After a compaction there are fewer prompts than before.
                    prompts = prompts[prompt_count:] or prompts[-1:]
                    self._start(thread.thread_id, thread.turn.id, prompts, answer)
                case _:
                    pass

        return Extension(sink=sink)

    def _start(
        self, thread_id: str, turn_id: str, prompts: list[str], answer: str | None
    ) -> None:
        message = {
            "type": "agent-turn-complete",
            "thread-id": thread_id,
            "turn-id": turn_id,
            "cwd": str(self._cwd),
            "client": self._client,
            "input-messages": prompts,
            "last-assistant-message": answer,
        }
        text = _json(message)
        if len(text.encode(errors="replace")) > _MAX_ARGUMENT:
            # If there are many prompts, the last one is kept.
            message |= {
                "input-messages": [_shortened(prompt) for prompt in prompts[-1:]],
                "last-assistant-message": answer and _shortened(answer),
            }
            text = _json(message)
        try:
            process = self._programs.start(
                [*self._argv, text], self._environment
            ).detached()
        except (OSError, ValueError):
            # The user was warned when the session began.
            return
        # Without a `wait`, the process would stay as a zombie.
        threading.Thread(
            target=process.wait,
            name="notify",
            daemon=True,
        ).start()


def _json(message: Mapping[str, object]) -> str:
    return json.dumps(message, ensure_ascii=False)


def _shortened(text: str) -> str:
    left_out = len(text) - _MAX_TEXT
    if left_out <= 0:
        return text
    return f"{text[:_MAX_TEXT]}… [{left_out} more characters]"
