"""The files that a session may read and write, by its settings and permission profile. LIGHT."""

from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from codex_py.protocol.frozen import frozen

Access: TypeAlias = Literal["read", "write", "deny"]


@frozen
class FileRules:
    """Denied paths, and the read-only or writable paths below them.

    The deepest entry that contains a path decides; a denying glob wins over every entry. `Denials`
    applies the rules to the file system.
    """

    entries: tuple[tuple[Path, Access], ...] = ()
    """Absolute paths, each once. An entry holds for everything in its folder."""
    globs: tuple[tuple[Path, str], ...] = ()
    """An absolute folder, and a pattern of denied files and folders below it: `*`, `?`, `[a-z]`,
    and `**` for any number of folders."""
    scan_depth: int | None = None
    """Limit on the depth, in folders, of the search for matches of `**` before a command runs;
    None: no limit."""
    may_be_unenforced: bool = False
    """True: commands also run where no sandbox backend can deny reading."""

    @property
    def denied(self) -> tuple[Path, ...]:
        return tuple(path for path, access in self.entries if access == "deny")

    @property
    def denies(self) -> bool:
        return bool(self.globs or self.denied)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The denied paths and patterns, in the form of an option."""
        paths = [str(path) for path in self.denied]
        globs = [f"{folder}/{glob}" for folder, glob in self.globs]
        return (*paths, *globs)

    def plus(self, other: "FileRules") -> "FileRules":
        """Combine two sets of rules. A path that either denies is denied; else the other's entry
        counts."""
        entries = dict(self.entries)
        for path, access in other.entries:
            if entries.get(path) != "deny":
                entries[path] = access
        globs = dict.fromkeys((*self.globs, *other.globs))
        scan_depth = self.scan_depth
        if scan_depth is None:
            scan_depth = other.scan_depth
        return replace(
            self,
            entries=tuple(entries.items()),
            globs=tuple(globs),
            scan_depth=scan_depth,
        )

    def denying(self, other: "FileRules") -> "FileRules":
        """Add the paths and globs that `other` denies.

        Own entries at or below these paths are dropped.
        """
        denied = dict.fromkeys(other.denied)
        entries: list[tuple[Path, Access]] = []
        for path, access in self.entries:
            if denied.keys().isdisjoint((path, *path.parents)):
                entries.append((path, access))
        entries.extend((path, "deny") for path in denied)
        globs = dict.fromkeys((*self.globs, *other.globs))
        return replace(self, entries=tuple(entries), globs=tuple(globs))

    def copied(self, source: Path, target: Path) -> "FileRules":
        """Add rules for a copy of a folder: the rules for `source`, applied to `target`."""
        entries: list[tuple[Path, Access]] = []
        for path, access in self.entries:
            if path.is_relative_to(source):
                entries.append((target / path.relative_to(source), access))
        globs: list[tuple[Path, str]] = []
        for folder, pattern in self.globs:
            if folder.is_relative_to(source):
                globs.append((target / folder.relative_to(source), pattern))
            elif source.is_relative_to(folder) and pattern.startswith("**/"):
                globs.append((target, pattern))
        return self.plus(FileRules(tuple(entries), tuple(globs)))


NO_RULES = FileRules()
