"""`--answers FILE`: answers the questions of the model. Loaded only if the option is given.

The file is JSON: an object with answers by the id of a question, or by its text; or a list with answers in the order
of the questions. An answer is the label of an option, any other text, or a list of these.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from codex_py.errors import CodexError, ExitCode
from codex_py.filesystem.ordinary import read_whole
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer, UserQuestion

_MAX_BYTES = 1024 * 1024
_Answer: TypeAlias = str | list[str]


def read_answers(path: Path, warn: Callable[[str], None]) -> "Answers":
    """
    Args:
        warn: gets a sentence for each question that the file does not answer.

    Raises:
        CodexError: the file cannot be read, or has another form; the message names its line.
    """
    try:
        text = read_whole(path, _MAX_BYTES).decode()
        found: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise _error(path, error.msg, error.lineno) from None
    except (OSError, ValueError, RecursionError) as error:
        raise _error(path, getattr(error, "strerror", None) or str(error)) from None
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    named = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if not isinstance(found, dict | list):
        raise _error(path, "it is neither an object nor a list of answers", 1)
    for name, answer in (*named.items(), *(("", answer) for answer in listed)):
        if not _is_answer(answer):
            at = max(0, text.find(json.dumps(name) if name else json.dumps(answer)))
            line = text.count("\n", 0, at) + 1
            raise _error(path, "an answer is a text, or a list of texts", line)
    return Answers(named, listed, path, warn)


class Answers:
    """An `Elicitor`. Questions of MCP servers are declined."""

    def __init__(
        self,
        named: Mapping[str, _Answer],
        listed: Sequence[_Answer],
        path: Path,
        warn: Callable[[str], None],
    ) -> None:
        self._named = named
        self._listed = deque(listed)
        self._path = path
        self._warn = warn

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if not elicitation.questions:
            return ElicitationAnswer("decline")
        content = {each.id: self._answer(each) for each in elicitation.questions}
        return ElicitationAnswer("accept", content)

    def _answer(self, question: UserQuestion) -> _Answer | None:
        if self._listed:
            return self._listed.popleft()
        for name in (question.id, question.question):
            if name in self._named:
                return self._named[name]
        self._warn(f"{self._path} has no answer to {question.id!r}: {question.question}")
        return None


def _is_answer(value: Any) -> bool:
    texts = cast("list[Any]", value) if isinstance(value, list) else [value]
    return bool(texts) and all(isinstance(text, str) and text for text in texts)


def _error(path: Path, reason: str, line: int | None = None) -> CodexError:
    place = str(path) if line is None else f"{path}:{line}"
    return CodexError(f"--answers: {place}: {reason}", code="answers", exit_code=ExitCode.USAGE)
