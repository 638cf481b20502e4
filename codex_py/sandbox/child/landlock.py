"""Confines this process to some folders with Landlock, without privileges or installed programs.

Landlock can only grant access: it cannot exclude a part of a granted folder. It does not cover
modes, owners, times and extended attributes. https://docs.kernel.org/userspace-api/landlock.html
"""

import posix
import stat

from codex_py.sandbox.child import kernel

_VERSION_FLAG = 1
_PATH_BENEATH = 1
_F_GETFL = 3

_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15
_REFER = 1 << 13
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_CHANGE_FOLDER = sum(1 << bit for bit in range(4, 13))
"""The rights to remove entries, and to create entries of every kind."""
_OF_FILES = _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
"""The rights that a single file can have."""

_BIND_TCP = 1
_CONNECT_TCP = 2
_SCOPE_ABSTRACT_SOCKETS = 1
_SCOPE_SIGNALS = 2

# The version of the interface that introduced each right.
REFER_SINCE = 2
TRUNCATE_SINCE = 3
_NETWORK_SINCE = 4
_IOCTL_SINCE = 5
_SCOPES_SINCE = 6

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
"""The devices in /dev that every command may read and write."""


def version() -> int:
    """The version of the interface; 0 if Landlock is missing."""
    try:
        return kernel.system_call("landlock_create_ruleset", None, 0, _VERSION_FLAG)
    except OSError:
        return 0


def restrict(
    writable: list[str],
    protected: list[str],
    *,
    whole: list[str],
    hidden: list[str],
    offline: bool,
) -> None:
    """Let this process and its children write only to the devices, `writable` and `whole`.

    All else can be read, except for other devices: a process that reads a terminal gets the text
    that is typed into it. The terminal that we were started in can be read and written.

    Args:
        writable: folders. If one has a protected entry, only its other present entries are granted;
            then no new entries can be made in the folder itself.
        protected: paths that stay read-only.
        whole: folders that are granted with the protected entries in them.
        hidden: paths that cannot be read unless they lie in a writable folder. Entries that are
            created later in the folders around them, and in `/`, cannot be read either.
        offline: forbid TCP. Landlock does so since its version 4.

    Raises:
        OSError: the kernel has no Landlock, or refused.
    """
    abi = version()
    handled = _WRITE_FILE | _READ_FILE | _CHANGE_FOLDER
    if abi >= REFER_SINCE:
        handled |= _REFER
    if abi >= TRUNCATE_SINCE:
        handled |= _TRUNCATE
    if abi >= _IOCTL_SINCE:
        handled |= _IOCTL_DEV
    ruleset = _ruleset(abi, handled, offline=offline)
    for name in DEVICES:
        _grant(ruleset, f"/dev/{name}", handled & _OF_FILES)
    for descriptor in range(3):
        if posix.isatty(descriptor):
            _add_rule(ruleset, descriptor, handled & _OF_FILES)
    unread = [path for path in hidden if not _is_in(path, [*writable, *whole])]
    shared_memory = _parts("/dev/shm", unread)
    for path in (*_parts("/", ["/dev", *unread]), *shared_memory):
        _grant(ruleset, path, _READ_FILE)
    # Device files must not be made: root could make one of the disk.
    rights = handled & ~(_READ_FILE | _MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
    for folder in writable:
        for path in _parts(folder, protected):
            _grant(ruleset, path, rights)
    for path in whole:
        _grant(ruleset, path, rights)
    kernel.system_call("landlock_restrict_self", ruleset, 0)
    posix.close(ruleset)


def restrict_beyond_view(writable: list[str]) -> None:
    """Forbid signals to outside processes and writes to outside pipes, in a view.

    The view has read-only mounts, but these do not prevent writes to a named pipe. Signals need
    version 6 of the interface, and pipes version 2: before that, Landlock forbids all moves from
    one folder to another.
    """
    abi = version()
    if abi < REFER_SINCE:
        return
    handled = _WRITE_FILE | _REFER
    ruleset = _ruleset(abi, handled, offline=False)
    # The mounts already confine moves.
    _grant(ruleset, "/", _REFER)
    for path in ("/dev", *writable):
        _grant(ruleset, path, handled)
    for descriptor in range(3):
        _grant_open(ruleset, descriptor)
    kernel.system_call("landlock_restrict_self", ruleset, 0)
    posix.close(ruleset)


def _ruleset(
    abi: int,
    handled: int,
    *,
    offline: bool,
) -> int:
    """Make a ruleset that forbids what it handles, except where a rule grants it."""
    network = 0
    if offline:
        network = _BIND_TCP | _CONNECT_TCP
    rights = [handled]
    if abi >= _NETWORK_SINCE:
        rights.append(network)
    if abi >= _SCOPES_SINCE:
        rights.append(_SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS)
    attributes = kernel.words(8, *rights)
    return kernel.system_call("landlock_create_ruleset", attributes, len(attributes), 0)


def _parts(folder: str, protected: list[str]) -> list[str]:
    """The folder, or the parts of it that together hold all present entries but the protected."""
    if folder in protected:
        return []
    beginning = folder.rstrip("/") + "/"
    inside = [path for path in protected if path.startswith(beginning)]
    if not inside:
        return [folder]
    parts: list[str] = []
    try:
        names = posix.listdir(folder)
    except OSError:
        return []
    for name in names:
        parts += _parts(beginning + name, protected)
    return parts


def _is_in(path: str, folders: list[str]) -> bool:
    return any(path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _grant_open(ruleset: int, descriptor: int) -> None:
    """If a file is open for writing, let it be opened again under a name such as /dev/stdout."""
    try:
        # Importing `fcntl` would take 0.3 ms.
        flags = kernel.system_call("fcntl", descriptor, _F_GETFL)
        is_read_only = flags & posix.O_ACCMODE == posix.O_RDONLY
        is_folder = stat.S_ISDIR(posix.fstat(descriptor).st_mode)
        if not is_read_only and not is_folder:
            _add_rule(ruleset, descriptor, _WRITE_FILE)
    except OSError:
        # The descriptor is closed; or it is a pipe without a name, which Landlock ignores.
        return


def _grant(
    ruleset: int,
    path: str,
    rights: int,
) -> None:
    try:
        descriptor = kernel.open_path(path)
    except OSError:
        # The file was removed; or it is a link, whose target is granted under its own name or not
        # at all.
        return
    try:
        is_folder = stat.S_ISDIR(posix.fstat(descriptor).st_mode)
        if not is_folder:
            rights &= _OF_FILES
        _add_rule(ruleset, descriptor, rights)
    finally:
        posix.close(descriptor)


def _add_rule(
    ruleset: int,
    descriptor: int,
    rights: int,
) -> None:
    """Grant rights to an open file, or to a folder with everything in it."""
    rule = rights.to_bytes(8, "little") + descriptor.to_bytes(4, "little")
    kernel.system_call("landlock_add_rule", ruleset, _PATH_BENEATH, rule, 0)
