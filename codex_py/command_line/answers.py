"""`--answers FILE`: answers the questions of the model. LIGHT.

The file is JSON: either an object with answers by the id or the text of a question, or a list with
answers in the order of the questions. An answer is the label of an option, any other text, or a
list of these.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from codex_py.errors import CodexError, ExitCode
from codex_py.filesystem.reading import read_whole
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer, UserQuestion

_MAX_BYTES = 1024 * 1024


class Answers:
    """An `Elicitor`. Questions of MCP servers are declined.

    Attributes:
        warn: gets a sentence for each question that the file does not answer.

    Raises:
        CodexError: the file cannot be read, or has another form; the message names its line.
    """

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self.warn = warn
        try:
            text = read_whole(path, _MAX_BYTES).decode()
            found: Any = json.loads(text)
        except json.JSONDecodeError as error:
            raise self._error(error.msg, error.lineno) from None
        except OSError as error:
            raise self._error(error.strerror or str(error)) from None
        except (ValueError, RecursionError) as error:
            raise self._error(str(error)) from None
        self._listed: list[Any] = []
        self._named: dict[str, Any] = {}
        if isinstance(found, dict):
            self._named = cast("dict[str, Any]", found)
        elif isinstance(found, list):
            self._listed = cast("list[Any]", found)
        else:
            raise self._error("it is neither an object nor a list of answers", 1)
        for name, answer in self._named.items():
            self._check(answer, text, place=name)
        for answer in self._listed:
            self._check(answer, text, place=answer)

    async def elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        if not elicitation.questions:
            return ElicitationAnswer("decline")
        content = {each.id: self._answer(each) for each in elicitation.questions}
        return ElicitationAnswer("accept", content)

    def _answer(self, question: UserQuestion) -> str | list[str] | None:
        if self._listed:
            return self._listed.pop(0)
        for name in (question.id, question.question):
            if name in self._named:
                return self._named[name]
        self.warn(f"{self._path} has no answer to {question.id!r}: {question.question}")
        return None

    def _check(
        self,
        answer: Any,
        text: str,
        *,
        place: Any,
    ) -> None:
        """Raise a `CodexError` if a value is not an answer.

        Args:
            text: the contents of the file.
            place: a value in the file, whose line the message names.
        """
        if not _is_answer(answer):
            start = max(0, text.find(json.dumps(place)))
            line = text.count("\n", 0, start) + 1
            raise self._error("an answer is a text, or a list of texts", line)

    def _error(self, reason: str, line: int | None = None) -> CodexError:
        if line is None:
            place = self._path
        else:
            place = f"{self._path}:{line}"
        text = f"--answers: {place}: {reason}"
        return CodexError(text, code="answers", exit_code=ExitCode.USAGE)


def _is_answer(value: Any) -> bool:
    if isinstance(value, list):
        texts = cast("list[Any]", value)
    else:
        texts = [value]
    return bool(texts) and all(isinstance(text, str) and text for text in texts)
