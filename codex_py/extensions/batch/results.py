"""The results file of a batch: one line for each task that has ended, and no other state.

Other files of the tasks are in a folder beside it, which has its name without the suffix.
"""

import json
import os
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codex_py.api.commands import CodexError, ExitCode, UsageError
from codex_py.api.files import lock, make_private, written_whole


class ResultsFile:
    """The results of a batch. No other process can open them until this process ends."""

    def __init__(self, path: Path) -> None:
        """Open the file, and cut off a line that a kill left unfinished.

        Raises:
            CodexError: another process writes to the file, or it cannot be used.
            UsageError: the file contains something else.
        """
        if path.suffix != ".jsonl":
            raise UsageError("the name of the results file must end in .jsonl")
        self._path = path
        self.folder = path.with_suffix("").absolute()
        self.ended: dict[str, tuple[str, str]] = {}
        """The digest and the status of each ended task, by its id. The digest is that of the task's line
        in the task file."""
        try:
            make_private(self.folder)
            # Lock the folder, because the file may be replaced. The descriptor stays open, and with
            # it the lock.
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
            lock(os.open(self.folder, flags), timeout_s=0)
            # The folder holds files of the agents. Keep git from listing them as changes of a task.
            (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")
            self._cut_unfinished_line()
            for result in self.lines():
                self._remember(result)
        except TimeoutError as error:
            text = f"another batch writes to {path}"
            raise CodexError(text, exit_code=ExitCode.TEMPORARY) from error
        except OSError as error:
            raise CodexError(
                f"{path} cannot be used: {error.strerror}", code="results"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            text = f"line {len(self.ended) + 1} of {path} is no result of a batch"
            raise UsageError(text) from error

    def _cut_unfinished_line(self) -> None:
        with self._path.open("a+b") as file:
            file.seek(0)
            whole = (len(line) for line in file if line.endswith(b"\n"))
            file.truncate(sum(whole))

    def _remember(self, result: Mapping[str, Any]) -> None:
        self.ended[result["id"]] = (result["task"], result["status"])

    def lines(self) -> Iterator[dict[str, Any]]:
        """Read the results, in the order in which the tasks ended."""
        with self._path.open("rb") as file:
            yield from map(json.loads, file)

    def forget(self, ids: Collection[str]) -> None:
        """Remove the results of tasks that will run again. A failure removes none of them."""
        if ids:
            kept = (each for each in self.lines() if each["id"] not in ids)
            with written_whole(self._path) as file:
                file.writelines(map(_line, kept))
        for each in ids:
            del self.ended[each]

    def new_folder(self, task: str, attempt: int) -> Path:
        """Make the folder for the artefacts of an attempt. Raises a `CodexError` if that fails."""
        folder = self.folder / task / str(attempt)
        with _writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def append(self, result: Mapping[str, Any]) -> None:
        """Write a result to the disk. If that raises a `CodexError`, the file is unchanged."""
        with _writing(self._path), self._path.open("ab") as file:
            size = file.tell()
            try:
                file.write(_line(result))
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.truncate(self._path, size)
                raise
        self._remember(result)

    def write_predictions(self, path: Path) -> None:
        """Write the patches of all done tasks in the format of SWE-bench's harness.

        Raises:
            CodexError: the file cannot be written.
        """
        done = (each for each in self.lines() if each["status"] == "done")
        with _writing(path), written_whole(path) as file:
            for each in done:
                prediction = {
                    "instance_id": each["id"],
                    "model_name_or_path": each["model"],
                    "model_patch": each["diff"],
                }
                file.write(_line(prediction))


@contextmanager
def _writing(path: Path) -> Generator[None]:
    """Convert an `OSError` to a `CodexError`."""
    try:
        yield
    except OSError as error:
        text = f"{path} cannot be written: {error.strerror}"
        raise CodexError(text, code="results") from error


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
