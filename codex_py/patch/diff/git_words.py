"""Changes as git has words for them."""

from collections.abc import Iterator

from codex_py.errors import PatchError
from codex_py.patch.files.modes import kind_of
from codex_py.protocol.patched_file import PatchedFile


def in_git_words(change: PatchedFile) -> Iterator[PatchedFile]:
    """The change itself, or what it comes to where git has to say it in several.

    That is so for a move onto a file that is there, for a change of type, and, if only because they need no
    mode that way, for changes of links and submodules; but not where they are just renamed.

    Raises:
        PatchError: a file was moved whose name was a link to it: where that led is not known any more.
    """
    kinds = {kind_of(change.old_mode), kind_of(change.new_mode)}
    is_file = kinds <= {"file", None}
    if change.replaced is None and (is_file or change.old == change.new):
        yield change
        return
    if change.move_to is not None and "link" in kinds and "file" in kinds:
        raise PatchError(
            f"{change.path}: a symbolic link that gives way to a file of another name cannot be written "
            "as a diff",
            kind="file",
        )
    path = change.destination
    if change.old is not None or change.new is None:
        yield PatchedFile.of(change.path, change.old, None, old_mode=change.old_mode)
    if change.replaced is not None and is_file and kind_of(change.replaced_mode) in {"file", None}:
        yield PatchedFile.of(
            path,
            change.replaced,
            change.new,
            old_mode=change.replaced_mode or change.new_mode,
            new_mode=change.new_mode,
        )
        return
    if change.replaced is not None:
        yield PatchedFile.of(path, change.replaced, None, old_mode=change.replaced_mode)
    if change.new is not None:
        yield PatchedFile.of(path, None, change.new, new_mode=change.new_mode)
