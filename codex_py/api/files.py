"""Files that an extension reads and writes, in folders that other programs can change.

`read_whole` refuses what is no ordinary file, such as a pipe, and a file that is too large;
`open_ordinary` opens one, to read it bit by bit.
`open_emptied` opens a file that its owner alone can read, and follows no link; `make_private` makes
such a folder, and `make_record_folder` one for copies of files, which commands do not see where any file is
denied. `own_folder` makes a folder that commands in the sandbox cannot change, and removes it at the end.
`written_whole` replaces a file at once, or not at all. `lock` holds the lock of an open file or folder.
`OutputFile` opens a file for the result of a run when it is made, so that a bad path costs no request, and
writes it once. `decode_text` reads the bytes of any text file, and raises `NotText`. `real_path` resolves
the links of a path, and refuses one that leads out of a folder. `denials_of` tells which files the
configuration denies: `denials_of(config.files).refuses(path)`.
"""

from codex_py.filesystem.denials import denials_of
from codex_py.filesystem.output_file import OutputFile
from codex_py.filesystem.own_folder import own_folder
from codex_py.filesystem.private import (
    lock,
    make_private,
    make_record_folder,
    open_emptied,
    written_whole,
)
from codex_py.filesystem.reading import open_ordinary, read_whole, real_path
from codex_py.filesystem.texts import NotText, decode_text

__all__ = [
    "NotText",
    "OutputFile",
    "decode_text",
    "denials_of",
    "lock",
    "make_private",
    "make_record_folder",
    "open_emptied",
    "open_ordinary",
    "own_folder",
    "read_whole",
    "real_path",
    "written_whole",
]
