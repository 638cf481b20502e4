"""`notify`: a program of the user's that is started whenever a turn is over, as Codex does. LIGHT.

Part of the composition root. Its last argument is a JSON object that says which turn, and what was said.
"""

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codex_py.app.user_programs import UserPrograms
from codex_py.protocol.events import AgentMessage, Event, ItemCompleted, TurnCompleted, TurnStarted


def missing_program(
    argv: Sequence[str], environment: Mapping[str, str], programs: UserPrograms
) -> str | None:
    """What to say of a program that is not there; None if it is."""
    try:
        found = programs.find(argv[0], environment)
    except FileNotFoundError as error:
        return f"The program {argv[0]!r} of `notify` cannot be started: {error.strerror}."
    if shutil.which(programs.cwd() / found) is None:
        return f"The program {argv[0]!r} of `notify` cannot be found."
    return None


class TurnNotifier:
    """An `EventSink`. The program runs on by itself: nobody waits for it, and what it prints is dropped.

    Args:
        argv: the program, with its first arguments.
        programs: finds the program, and says where it starts.
        prompts: all that the user has said in the thread; asked when a turn begins and when it ends.
        new_id: makes an id for a turn.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        thread_id: str,
        cwd: Path,
        client: str,
        environment: Mapping[str, str],
        programs: UserPrograms,
        prompts: Callable[[], Sequence[str]],
        new_id: Callable[[], str],
    ) -> None:
        self._argv = argv
        self._thread_id = thread_id
        self._cwd = cwd
        self._client = client
        self._environment = environment
        self._programs = programs
        self._prompts = prompts
        self._new_id = new_id
        self._said_before = 0
        self._answer: str | None = None

    def __call__(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._said_before = len(self._prompts())
                self._answer = None
            case ItemCompleted(AgentMessage(text=text)):
                self._answer = text
            case TurnCompleted():
                self._start()
            case _:
                pass

    def _start(self) -> None:
        said = self._prompts()
        message = {
            "type": "agent-turn-complete",
            "thread-id": self._thread_id,
            "turn-id": self._new_id(),
            "cwd": str(self._cwd),
            "client": self._client,
            # Where the history was compacted meanwhile, there are fewer than before.
            "input-messages": list(said[self._said_before :] or said[-1:]),
            "last-assistant-message": self._answer,
        }
        name, *arguments = self._argv
        try:
            program = self._programs.find(name, self._environment)
            process = subprocess.Popen(
                [program, *arguments, json.dumps(message, ensure_ascii=False)],
                cwd=self._programs.cwd(),
                env=self._programs.environment(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError):
            # That it is not there was said when the session began.
            return
        # Someone has to take note of its end, or it stays as a zombie.
        threading.Thread(target=process.wait, name="notify", daemon=True).start()
