"""Counts the changed lines of a diff. LIGHT."""

import re


def changed_lines(diff: str) -> int | None:
    """Count the added and removed lines of a diff that we wrote.

    Returns None if the diff leaves a text out. A binary file counts as one line.
    """
    if re.search("^Not shown: ", diff, re.MULTILINE):
        return None
    # The lines of a hunk never begin with these characters.
    files = re.split("^diff --git ", diff, flags=re.MULTILINE)[1:]
    count = 0
    for file in files:
        count += len(re.findall("^[-+]", file, re.MULTILINE))
        if "\n@@ " in file:
            # The names of the old file and of the new one begin with these characters too.
            count -= 2
        if "\nBinary files " in file or "\nGIT binary patch\n" in file:
            count += 1
    return count
