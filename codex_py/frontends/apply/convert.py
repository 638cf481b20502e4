"""`codex-py apply --convert`."""

from pathlib import Path

from codex_py.frontends.apply.options import ApplyOptions
from codex_py.patch.convert import reversed_diff, to_envelope, to_unified
from codex_py.patch.formats import Detected


def converted(found: Detected, cwd: Path, options: ApplyOptions) -> str:
    """The patch in the form that the options ask for.

    Raises:
        PatchError: it does not fit the files, or cannot be said in that form.
    """
    if options.convert == found.kind and not options.reverse:
        return found.text
    if options.convert == "envelope":
        return to_envelope(found.text, cwd)
    diff = found.text if found.kind == "unified" else to_unified(found.text, cwd)
    return reversed_diff(diff, cwd) if options.reverse else diff
