"""Files that an extension reads and writes, in a project that other programs can change.

`read_whole` refuses what is no ordinary file, such as a pipe, and a file that is too large.
`open_emptied` opens a file that its owner alone can read, and follows no link.
"""

from codex_py.filesystem.private import open_emptied
from codex_py.filesystem.reading import read_whole

__all__ = ["open_emptied", "read_whole"]
