"""A git repository that names a program wherever git lets one be named."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_NAMES_A_PROGRAM = (
    *("core.fsmonitor", "core.pager", "core.editor", "core.askPass", "core.sshCommand"),
    *(
        "core.gitProxy",
        "core.alternateRefsCommand",
        "diff.external",
        "credential.helper",
    ),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "gpg.program"),
    *(
        "diff.evil.command",
        "diff.evil.textconv",
        "merge.evil.driver",
        "sequence.editor",
    ),
    *("pager.cat-file", "pager.merge-file", "alias.cat-file", "alias.merge-file"),
    *("uploadpack.packObjectsHook", "remote.origin.uploadpack", "mergetool.evil.cmd"),
)
_HOOKS = (
    *(
        "post-checkout",
        "pre-commit",
        "post-commit",
        "post-index-change",
        "fsmonitor-watchman",
    ),
    *("reference-transaction", "pre-auto-gc", "applypatch-msg", "prepare-commit-msg"),
)


@dataclass(frozen=True, slots=True)
class HostileRepository:
    root: Path
    marker: Path
    """There as soon as any of the programs has run."""

    @property
    def environment(self) -> dict[str, str]:
        """What a shell that was set up for the repository could pass on."""
        program = str(self.root / "evil")
        return {
            "PATH": f"{self.root}{os.pathsep}.{os.pathsep}{os.environ['PATH']}",
            **dict.fromkeys(
                ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_ASKPASS"), program
            ),
            **dict.fromkeys(
                ("GIT_SSH", "GIT_SSH_COMMAND", "GIT_EDITOR", "SSH_ASKPASS"), program
            ),
            "GIT_EXEC_PATH": str(self.root),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": program,
        }


def make_hostile_repository(root: Path, marker: Path) -> HostileRepository:
    """A commit with the file `f`, of five lines; the blob of what was there before is missing here."""
    root.mkdir()
    (root / "f").write_text("a\nb\nc\nd\ne\n", encoding="utf-8")
    (root / ".gitattributes").write_text(
        "* filter=evil diff=evil merge=evil\n", encoding="utf-8"
    )
    for words in (
        ["init", "-q"],
        ["add", "."],
        [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.invalid",
            "commit",
            "-qm",
            "First",
        ],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)

    script = f"#!/bin/sh\n: >>'{marker}'\n"
    hooks = [root / ".git/hooks" / name for name in _HOOKS]
    for program in (root / "evil", root / "git", root / "git-cat-file", *hooks):
        program.parent.mkdir(exist_ok=True)
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)

    def configure(key: str, value: str) -> None:
        subprocess.run(["git", "config", key, value], cwd=root, check=True)

    # What is missing is asked for at the remote, by a program of the repository's choice.
    for key, value in {
        "remote.origin.url": str(root),
        "remote.origin.promisor": "true",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
        "protocol.allow": "always",
        "protocol.file.allow": "always",
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "filter.evil.required": "true",
    }.items():
        configure(key, value)
    for key in _NAMES_A_PROGRAM:
        configure(key, ("!" if key.startswith("alias.") else "") + str(root / "evil"))
    return HostileRepository(root, marker)
