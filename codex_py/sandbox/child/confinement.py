"""Parses the launcher's command line, and takes the steps that confine a command."""

import posix
import stat

from codex_py.sandbox.child import kernel
from codex_py.sandbox.child.kernel import signals
from codex_py.sandbox.child.notified import ListenerLink

FAILED = 125
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127
_LIMITS = ("processes", "files", "memory")


class Confinement:
    """Says how a command is confined.

    It is made of the words `BACKEND [OPTION]... -- COMMAND...`. `BACKEND` is `namespaces`, `views`
    (the same without a process namespace), `landlock` or `supervised` (Landlock with a supervisor).
    The options are:

    - `filter=HEX`: the seccomp filter;
    - `sockets=HEX`, with `namespaces`: another filter, which lets a supervisor allow local sockets;
    - `offline`: the command has no network;
    - `proxy=NAME`: the command has no network except for the agent's proxy, which waits under this
      name; `local`: the proxy allows local hosts; `direct=HOSTS`: see `network.variables`;
    - `processes=N`; `files=N`, of each process; `memory=N`, the bytes of data of each process;
    - `alive=PATH`: see `LivenessPipe`;
    - `write=PATH`: a writable path; the outermost ones come first;
    - `whole=PATH`, with Landlock: a path that is writable with everything in it;
    - `protect=PATH`: a read-only path;
    - `link=PATH`, with the views: a link that must stay as it is;
    - `hide=PATH`: a path that cannot be read; `open=PATH`: a path below it that can;
    - `more=PATH`: a file of more options, with NUL between them.
    """

    def __init__(self, words: list[str]) -> None:
        end = words.index("--")
        self.backend = words[0]
        self.command = words[end + 1 :]
        given = words[1:end]
        for word in words[1:end]:
            if word.startswith("more="):
                given += _read(word.removeprefix("more="))
        options: dict[str, list[str]] = {}
        for word in given:
            name, _, value = word.partition("=")
            options.setdefault(name, []).append(value)
        self.filter = bytes.fromhex(options["filter"][0])
        self.sockets = bytes.fromhex(options.get("sockets", [""])[0])
        self.alive = options["alive"][0]
        self.offline = "offline" in options
        self.proxy = options.get("proxy", [""])[0]
        self.allows_local = "local" in options
        self.direct = options.get("direct", [""])[0]
        self.variables: dict[bytes, bytes] = {}
        """Variables that the command gets beside its own."""
        self.limits = {
            name: int(options[name][0]) for name in _LIMITS if name in options
        }
        self.writable = options.get("write", [])
        self.whole = options.get("whole", [])
        self.protected = options.get("protect", [])
        self.links = options.get("link", [])
        self.hidden = options.get("hide", [])
        self.opened = options.get("open", [])
        self._default_signals: list[int] = []
        """The ignored signals that the command must not ignore."""

    def begin(self) -> None:
        """Tie this process to the agent, and ignore the signals that ask a process to end.

        These signals are sent to the whole group. The command handles them, and this process waits
        for the result.
        """
        # This process dies with the agent, even if the agent is killed.
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signals.SIGKILL)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        for number in (
            signals.SIGHUP,
            signals.SIGINT,
            signals.SIGQUIT,
            signals.SIGTERM,
        ):
            if signals.signal(number, signals.SIG_IGN) != signals.SIG_IGN:
                self._default_signals.append(number)

    def listen(self) -> None:
        """Start the loopback interface of a new network namespace.

        The command can then reach its own servers. `ProxiedConfinement` also makes the way out.
        """
        try:
            kernel.raise_loopback()
        except OSError:
            # Root of a container may lack the right.
            return

    def drop_privileges(self) -> None:
        """Drop capabilities, set the limits, and reset the signals. The filter must be set next."""
        is_view = self.backend in {"namespaces", "views"}
        # The owner of a file outside of the view could be changed through an open descriptor.
        keeps_owners = is_view and not _has_files_open()
        kernel.drop_capabilities(owners=keeps_owners)
        limits = self.limits
        # Elsewhere, the kernel would count all processes of the user.
        has_own_users = is_view and posix.geteuid() != 0
        if has_own_users and "processes" in limits:
            kernel.limit(kernel.RLIMIT_NPROC, limits["processes"])
        if "files" in limits:
            kernel.limit(kernel.RLIMIT_NOFILE, limits["files"])
        if "memory" in limits:
            kernel.limit(kernel.RLIMIT_DATA, limits["memory"])
        # The first two are ignored by Python itself.
        for number in (signals.SIGPIPE, signals.SIGXFSZ, *self._default_signals):
            signals.signal(number, signals.SIG_DFL)

    def set_filter(self, link: ListenerLink | None) -> None:
        """Filter system calls.

        Args:
            link: leads to the process that answers for local sockets, if there is one.
        """
        if link is None:
            kernel.set_filter(self.filter)
        else:
            link.set_filter(self.sockets, self.filter)

    def execute(self) -> None:
        """Become the command, with only three descriptors. If that fails, say so and exit."""
        posix.closerange(3, 1 << 20)
        become(self.command, self.variables)


def become(command: list[str], more: dict[bytes, bytes]) -> None:
    """Execute the command, with the variables in `more`. If that fails, say so and exit."""
    try:
        _execute(command, {**posix.environ, **more})
    except ValueError:
        say("cannot run '': there is no program without a name")
        kernel.leave(_NOT_FOUND)
    except OSError as error:
        say(f"cannot run {command[0]!r}: {error.strerror}")
        if isinstance(error, FileNotFoundError):
            kernel.leave(_NOT_FOUND)
        kernel.leave(_NOT_EXECUTABLE)


def say(text: str) -> None:
    """Print a line about the sandbox to standard error."""
    posix.write(2, f"codex-py sandbox: {text}\n".encode(errors="replace"))


def _has_files_open() -> bool:
    """True if the owner of a file could be changed through one of the first three descriptors.

    The file is outside of the view.
    """
    pipe = posix.pipe()
    nameless = {posix.fstat(pipe[0]).st_dev}
    for end in pipe:
        posix.close(end)
    for descriptor in range(3):
        try:
            found = posix.fstat(descriptor)
            is_read_only = posix.fstatvfs(descriptor).f_flag & posix.ST_RDONLY
        except OSError:
            # The descriptor is closed.
            continue
        has_name = found.st_dev not in nameless and not stat.S_ISSOCK(found.st_mode)
        if has_name and not is_read_only:
            return True
    return False


def _read(path: str) -> list[str]:
    """The words in a file of options."""
    file = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    data = b""
    while True:
        part = posix.read(file, 1 << 20)
        if not part:
            break
        data += part
    posix.close(file)
    return [kernel.decoded(word) for word in data.split(b"\0")]


def _execute(command: list[str], environment: dict[bytes, bytes]) -> None:
    """Execute as `os.execvpe` does. `posix.environ` is a copy: our own environment may be wiped."""
    name = kernel.encoded(command[0])
    if b"/" in name:
        # A path is not searched for.
        folders = [b""]
    else:
        folders = environment.get(b"PATH", b"/bin:/usr/bin").split(b":")
    problems: list[OSError] = []
    for folder in folders:
        path = name
        if folder:
            path = folder + b"/" + name
        try:
            posix.execve(path, command, environment)
        except OSError as error:
            problems.append(error)
    for problem in problems:
        if not isinstance(problem, FileNotFoundError | NotADirectoryError):
            raise problem
    raise problems[-1]
