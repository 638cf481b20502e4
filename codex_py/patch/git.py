"""git, started so that it runs nothing that a repository names.

A repository is data here: whoever wrote its configuration and its hooks is not asked what to run. Text conversions
cannot be turned off one by one, so only commands are run that use none. Commands that look at files of the work tree
need a git `without_filters`: git reads a file again, through its filter, if it may have changed since it was checked
out.
https://git-scm.com/docs/git-config
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.programs import ONLY_INSIDE, Programs

_TIMEOUT_S = 60

_SETTINGS = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.alternateRefsCommand="),
    *("core.pager=cat", "core.editor=false", "core.askPass=", "core.sshCommand=false"),
    *("credential.helper=", "diff.external=", "commit.gpgSign=false", "core.attributesFile="),
    *("gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "checkout.workers=4"),
)
"""They win over those of every file."""

_VARIABLES = {
    # No transport at all; and git 2.45 does not even look for a missing object elsewhere.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Git:
    program: str
    variables: Mapping[str, str]
    is_shielded: bool = False
    """Ctrl-C in a terminal does not reach it: it tidies up, and takes no time."""

    def run(
        self, folder: Path, *words: str, stdin: bytes = b"", timeout_s: float = _TIMEOUT_S
    ) -> "subprocess.CompletedProcess[bytes]":
        """Run a command to its end; it may have failed. A `CodexError`: it could not be run, or did not end."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        try:
            return subprocess.run(
                [self.program, "--no-pager", *settings, *words],
                cwd=folder,
                env=self.variables,
                input=stdin,
                capture_output=True,
                timeout=timeout_s,
                check=False,
                process_group=0 if self.is_shielded else None,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CodexError(f"git could not be run: {error}", code="git") from error

    def output(self, folder: Path, *words: str, stdin: bytes = b"") -> str:
        """Run a command. Returns its output, without blank ends. A `CodexError`: it failed, or could not be run."""
        return os.fsdecode(self.data(folder, *words, stdin=stdin)).strip()

    def names(self, folder: Path, *words: str) -> list[str]:
        """Run a command that prints names with NUL bytes between them. Raises as `output`."""
        return [os.fsdecode(name) for name in self.data(folder, *words).split(b"\0") if name]

    def data(self, folder: Path, *words: str, stdin: bytes = b"") -> bytes:
        """Run a command. Returns its output as it is. Raises as `output`."""
        done = self.run(folder, *words, stdin=stdin)
        if done.returncode:
            # The first error is the cause of those behind it.
            said = done.stderr.decode(errors="replace").strip().splitlines()
            errors = (line for line in said if line.startswith(("error:", "fatal:")))
            reason = next(errors, "; ".join(said)) or f"exit code {done.returncode}"
            raise CodexError(f"git {words[0]} failed in {folder}: {reason}", code="git")
        return done.stdout

    def without_filters(self, tree: Path) -> "Git":
        """A git for which the filters that are configured in a work tree do nothing."""
        listed = self.run(tree, "config", "-z", "--name-only", "--get-regexp", r"^filter\.").stdout
        names = {os.fsdecode(key).rpartition(".")[0] for key in listed.split(b"\0") if key}
        off = [("smudge", ""), ("clean", ""), ("process", ""), ("required", "false")]
        settings = [(f"{name}.{key}", value) for name in names for key, value in off]
        # `-c` cannot set a name with `=` in it.
        variables = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings):
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return replace(self, variables={**self.variables, **variables})


def batched_contents(printed: bytes) -> Iterator[bytes | None]:
    """The contents that `cat-file --batch` has printed, in the order asked for; None for an object that is lost."""
    stream = BytesIO(printed)
    while head := stream.readline().split():
        # A newline is behind each.
        yield stream.read(int(head[2]) + 1)[:-1] if len(head) == 3 else None


def find_git(programs: Programs, environment: Mapping[str, str]) -> Git:
    """Raises a `CodexError`: there is no such git."""
    try:
        program = programs.find("git", environment)
    except FileNotFoundError as error:
        inside = error.filename2
        why = f"cannot be used: {ONLY_INSIDE}, {inside}" if inside else "is not installed"
        raise CodexError(f"git {why}", code="git") from error
    kept = {
        name: value
        # git looks for parts of itself on `PATH`.
        for name, value in programs.environment(environment).items()
        # Such as GIT_DIR, GIT_CONFIG_COUNT and GIT_EXTERNAL_DIFF, and SSH_ASKPASS.
        if not name.startswith(("GIT_", "SSH_"))
    }
    return Git(program, kept | _VARIABLES)
