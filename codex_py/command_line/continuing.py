"""Writes the options of a run for the command that continues it."""

from dataclasses import replace
from pathlib import Path
from typing import Final

from codex_py.command_line.arguments import Arguments, option_words
from codex_py.config.overrides import sets_secret

_REPEATED: Final = {
    "model",
    "oss",
    "local_provider",
    "profile",
    "strict_config",
    "ignore_user_config",
    "sandbox",
    "full_auto",
    "add_dir",
    "deny",
    "allow_domain",
    "ignore_rules",
    "bypass_hook_trust",
    "allow_unenforced",
    "cd",
    "skip_git_repo_check",
    "output_schema",
    "limits",
    "fail_on",
}
"""Options that the continuing run needs as well."""
_PATHS: Final = ("cd", "output_schema")
"""Options that are paths. They are repeated as absolute paths."""


def continuing_words(arguments: Arguments) -> list[str]:
    """The options of a run that the continuing run needs, as words that are valid in every folder.

    Those of extensions are among them if their class is repeated. A session of a worktree continues
    there, so `--cd` is not repeated for it. A `-c` that sets a secret is left out, because the words
    are displayed.
    """
    if arguments.worktree is not None:
        arguments = replace(arguments, cd=None)
    absolute: dict[str, str] = {}
    for name in _PATHS:
        path = getattr(arguments, name)
        if path is not None:
            absolute[name] = str(Path(path).absolute())
    folders = [str(Path(name).absolute()) for name in arguments.add_dir]
    portable = replace(arguments, add_dir=folders, **absolute)
    words = option_words(portable, _REPEATED)
    for options in arguments.of_extensions:
        if options.is_repeated:
            words += option_words(options)
    for override in arguments.overrides:
        if not sets_secret(override):
            words += ["-c", override]
    return words
