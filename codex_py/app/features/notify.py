"""`notify`: starts a program of the user after each completed turn, as Codex does. LIGHT.

Part of the composition root. The last argument of the program is a JSON object with the turn, its
prompts and its answer.
"""

import json
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.app.options import SessionSetup
from codex_py.app.user_programs import UserPrograms, user_programs
from codex_py.protocol.event_items import AgentMessage
from codex_py.protocol.events import Event, ItemCompleted, TurnCompleted, TurnStarted
from codex_py.protocol.extension import Extension, Thread

_MAX_ARGUMENT_BYTES: Final = 120_000
"""The limit of the last argument. Linux takes 131,071 bytes in one argument."""
_MAX_TEXT_CHARS: Final = 4_000
"""The limit of each text if all texts together are too long."""


def program_problem(
    argv: Sequence[str],
    environment: Mapping[str, str],
    programs: UserPrograms,
) -> str | None:
    """Return a warning if the program is missing, or another one than in a shell; else None."""
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


class TurnNotifier:
    """Starts the program after each turn.

    The session does not wait for it, and discards its output.
    """

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
        self,
        thread_id: str,
        turn_id: str,
        prompts: list[str],
        answer: str | None,
    ) -> None:
        """Start the program, and leave it running."""
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
        if len(text.encode(errors="replace")) > _MAX_ARGUMENT_BYTES:
            # If there are many prompts, the last one is kept.
            last = [_shortened(prompt) for prompt in prompts[-1:]]
            message["input-messages"] = last
            if answer is not None:
                message["last-assistant-message"] = _shortened(answer)
            text = _json(message)
        try:
            argv = [*self._argv, text]
            start = self._programs.start(argv, self._environment)
            process = start.detached()
        except (OSError, ValueError):
            # The user was warned when the session began.
            return
        # Without a `wait`, the process would stay as a zombie.
        waiting = threading.Thread(target=process.wait, name="notify", daemon=True)
        waiting.start()


def _json(message: Mapping[str, object]) -> str:
    return json.dumps(message, ensure_ascii=False)


def _shortened(text: str) -> str:
    left_out = len(text) - _MAX_TEXT_CHARS
    if left_out <= 0:
        return text
    return f"{text[:_MAX_TEXT_CHARS]}… [{left_out} more characters]"
