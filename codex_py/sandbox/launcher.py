"""Confines itself, and becomes the command. Started for every command that the model runs.

    python -I -S -c '…; from codex_py.sandbox.launcher import main; …' RUNG [OPTION]... -- COMMAND...

`RUNG` is `namespaces`, `views` (the same without a namespace of processes), `landlock` or `supervised`, which
is Landlock with our help; the options are `offline`, `filter=HEX`, `write=PATH` (outermost first),
`protect=PATH`, for the views `link=PATH`, which is to stay the link that it is, and for Landlock `whole=PATH`,
writable with all that is in it. Anything that fails ends it with a line on standard error and `FAILED`: a
command never runs with less than it was to be held by.

A program, rather than a thread of the agent that restricts itself: namespaces need a process without
threads, a mistake in here can not lock the agent up, and nothing runs between fork and exec of the agent,
which can so be spawned by the cheaper vfork. It costs some 10 ms, most of it the interpreter, and
therefore imports neither `pathlib` nor `json`, `signal` or `argparse`. A standard library is all it needs.
"""

import os
import sys

from codex_py.sandbox import kernel, landlock, namespaces

TYPE_CHECKING = False  # as in `typing`, which would cost 5 ms
if TYPE_CHECKING:
    from collections.abc import Callable

FAILED = 125
_NOT_EXECUTABLE, _NOT_FOUND = 126, 127

_SIGHUP, _SIGINT, _SIGQUIT, _SIGKILL, _SIGPIPE, _SIGTERM, _SIGXFSZ = 1, 2, 3, 9, 13, 15, 25
_ASKING_TO_END = (_SIGHUP, _SIGINT, _SIGQUIT, _SIGTERM)
_SIGNAL_EXIT_BASE = 128
_DESCRIPTOR_BYTES = 4


class Confinement:
    def __init__(self, words: list[str]) -> None:
        end = words.index("--")
        self.rung = words[0]
        self.offline = "offline" in words[1:end]
        self.filter = b""
        self.writable: list[str] = []
        self.whole: list[str] = []
        self.protected: list[str] = []
        self.links: list[str] = []
        for word in words[1:end]:
            name, _, value = word.partition("=")
            if name == "filter":
                self.filter = bytes.fromhex(value)
            elif name == "write":
                self.writable.append(value)
            elif name == "whole":
                self.whole.append(value)
            elif name == "protect":
                self.protected.append(value)
            elif name == "link":
                self.links.append(value)
        self.command = words[end + 1 :]


def main(words: list[str]) -> None:
    """Does not return."""
    confinement = Confinement(words)
    try:
        _run(confinement)
    except OSError as error:
        _say(f"the command could not be confined ({confinement.rung}): {error}")
    os._exit(FAILED)


def _run(confinement: Confinement) -> None:
    # Dies with the agent, also where the agent can not say so any more.
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if confinement.rung == "landlock":
        _restrict_with_landlock(confinement)
        _become_command(confinement, ())
    if confinement.rung == "supervised":
        _run_supervised(confinement)
    processes = confinement.rung == "namespaces"
    cwd = os.getcwd()  # noqa: PTH109 - pathlib would cost 5 ms
    namespaces.unshare(processes=processes, offline=confinement.offline)
    if processes:
        ours = _ignore_signals()
        read_end, report = os.pipe()
        first = os.fork()
        if first:
            os.close(report)
            _wait_outside(first, read_end)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    else:
        ours, report = [], -1
    namespaces.restrict_writes(
        confinement.writable, confinement.protected, confinement.links, processes=processes
    )
    # Until now it was the one below the mounts.
    os.chdir(cwd)
    if processes:
        # Nobody in there is to read our memory or our descriptors.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        command = os.fork()
        if command:
            _wait_as_first_process(command, report)
    # `kill 0` reaches the group that we were started in, also from a namespace of processes.
    landlock.restrict_signals()
    _become_command(confinement, ours)


def _restrict_with_landlock(confinement: Confinement) -> None:
    landlock.restrict_writes(
        confinement.writable,
        confinement.protected,
        whole=confinement.whole,
        offline=confinement.offline,
    )


def _ignore_signals() -> list[int]:
    """What ends the command by asking, asks all of its group: we wait for what it makes of that."""
    return [n for n in _ASKING_TO_END if kernel.set_signal(n, kernel.SIG_IGN) != kernel.SIG_IGN]


def _run_supervised(confinement: Confinement) -> None:
    # 2 ms that the other ways can do without. Of `socket` and `select`, the cores are enough.
    import _socket  # noqa: PLC0415
    import select  # noqa: PLC0415

    from codex_py.sandbox.calls import Asked  # noqa: PLC0415
    from codex_py.sandbox.places import Places  # noqa: PLC0415
    from codex_py.sandbox.supervisor import Supervisor  # noqa: PLC0415

    # We can not write elsewhere either; and who is confined further may not look into us.
    landlock.restrict_writes(
        [], [], whole=[*confinement.writable, *confinement.whole], offline=False
    )
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    ours = _ignore_signals()
    here, there = _socket.socketpair()

    def set_filter(program: bytes) -> None:
        asked = kernel.set_filter_that_asks(program).to_bytes(_DESCRIPTOR_BYTES, "little")
        there.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, asked)])

    command = os.fork()
    if not command:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
        _restrict_with_landlock(confinement)
        _become_command(confinement, ours, set_filter=set_filter)
    there.close()
    kernel.drop_capabilities()
    ended = os.pidfd_open(command)
    received = here.recvmsg(1, _socket.CMSG_SPACE(_DESCRIPTOR_BYTES))[1]
    if received:
        asked = Asked(int.from_bytes(received[0][2], "little"))
        supervisor = Supervisor(asked, Places(asked, confinement.writable, confinement.protected))
        waiting = select.poll()
        waiting.register(ended, select.POLLIN)
        waiting.register(asked.descriptor, select.POLLIN)
        while (ended, select.POLLIN) not in (events := waiting.poll()):
            if (asked.descriptor, select.POLLIN) in events:
                supervisor.answer_one()
    code = _exit_code(os.waitpid(command, 0)[1])
    _end_children()
    os._exit(code)


def _end_children() -> None:
    """Kill what the command left behind, which is ours now. Without us, it could do little more."""
    try:
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123
                children = file.read().split()
            for child in children:
                os.kill(int(child), _SIGKILL)
            # Its own children are ours, now that it has ended.
            os.wait()
    except OSError:
        # There are none any more, or this kernel does not tell them.
        return


def _wait_outside(first: int, report: int) -> None:
    """Leave with the exit code that is reported, before the namespaces are taken down: that is 20 ms."""
    code = os.read(report, 1)
    os._exit(code[0] if code else _exit_code(os.waitpid(first, 0)[1]))


def _wait_as_first_process(command: int, report: int) -> None:
    """Reap everyone's children until the command has ended. What it left behind ends with us."""
    kernel.drop_capabilities()
    # The output ends with the command, not with us.
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    while True:
        pid, status = os.wait()
        if pid == command:
            code = _exit_code(status)
            os.write(report, bytes([code]))
            os._exit(code)


def _become_command(
    confinement: Confinement,
    default_signals: "list[int] | tuple[()]",
    *,
    set_filter: "Callable[[bytes], None]" = kernel.set_filter,
) -> None:
    kernel.drop_capabilities()
    # Those that Python ignores itself, and those that we do.
    for number in (_SIGPIPE, _SIGXFSZ, *default_signals):
        kernel.set_signal(number, kernel.SIG_DFL)
    set_filter(confinement.filter)
    os.closerange(3, 1 << 20)
    command = confinement.command
    try:
        os.execvp(command[0], command)
    except ValueError:
        _say("cannot run '': there is no program without a name")
        os._exit(_NOT_FOUND)
    except OSError as error:
        _say(f"cannot run {command[0]!r}: {error.strerror}")
        os._exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE)


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else _SIGNAL_EXIT_BASE - code


def _say(text: str) -> None:
    os.write(2, f"codex-py sandbox: {text}\n".encode(errors="replace"))


if __name__ == "__main__":
    main(sys.argv[1:])
