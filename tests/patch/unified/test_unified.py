"""Tests `patch/unified/hunks.py`."""

from codex_py.patch.unified.hunks import written_hunks
from codex_py.patch.unified.reader import read_diff

HUNK = b"@@ -1,2 +1,2 @@\n x\n-a\n\\ No newline at end of file\n+b\n"
HEADER = b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\nindex 12345..67890\n"


def test_reversing_twice_changes_nothing():
    (file,) = read_diff(HEADER + b"--- a/f\n+++ b/f\n" + HUNK)
    assert vars(file.reversed()) != vars(file)
    assert vars(file.reversed().reversed()) == vars(file)


def test_hunks_are_written_as_they_were_read():
    (file,) = read_diff(b"--- f\n+++ f\n" + HUNK)
    assert written_hunks(file.hunks) == HUNK
