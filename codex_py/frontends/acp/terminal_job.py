"""Runs one command in a terminal of the client, which starts this file as a script.

The client only learns the name of a file. It has the command with its folder and its environment,
so the command gets exactly those, and no variable of the client. The file can be claimed once, and
is removed when the command is no longer wanted: a client that is late runs nothing.
"""

import os
import sys

_NOT_WANTED = 125
_CANNOT_RUN = 126


def job_bytes(argv: list[bytes], cwd: bytes, environment: dict[bytes, bytes]) -> bytes:
    """The contents of the file: its fields end with NUL, which none of them can have."""
    fields = [cwd, str(len(argv)).encode(), *argv]
    fields += [name + b"=" + value for name, value in environment.items()]
    return b"".join([field + b"\0" for field in fields])


def main(file: str) -> int:
    """Become the command. Returns an exit code if that is not possible."""
    claimed = f"{file}.claimed"
    try:
        os.rename(file, claimed)  # noqa: PTH104 - `pathlib` takes 10 ms to import
    except OSError:
        sys.stderr.write("codex-py does not want this command to run any more\n")
        return _NOT_WANTED
    with open(claimed, "rb") as stream:  # noqa: PTH123
        cwd, count, *fields = stream.read().split(b"\0")[:-1]
    os.unlink(claimed)  # noqa: PTH108
    argv = fields[: int(count)]
    pairs = [field.partition(b"=") for field in fields[int(count) :]]
    environment = {name: value for name, _, value in pairs}
    try:
        os.chdir(cwd)
        # As everywhere: nobody types into a command of the model.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # The command of the model is found as `Popen` finds one: on its own PATH.
        os.execvpe(argv[0], argv, environment)  # noqa: TID251
    except OSError as error:
        sys.stderr.write(f"cannot run {os.fsdecode(argv[0])!r}: {error.strerror}\n")
    return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
