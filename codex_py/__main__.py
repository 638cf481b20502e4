"""Where the program starts and ends."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` puts the working directory first, and a repository may hold a `json.py`.
    del sys.path[0]

import gc
import os

from codex_py import __version__

_APPLY_PATCH = {"apply_patch", "applypatch"}
"""Called by one of these names, by a symbolic link, it does nothing but apply a patch, as Codex does."""
_RUN_AS_APPLY_PATCH = "--codex-run-as-apply-patch"


def main() -> None:
    """Run the program and leave the process.

    A mistake of ours leaves through its traceback instead, as any Python program would.
    """
    try:
        _main()
    except KeyboardInterrupt:
        _leave(130)


def _main() -> None:
    _use_utf8()
    argv = sys.argv[1:]
    _open_standard_descriptors()
    applies_patch = sys.argv[0].rpartition("/")[2] in _APPLY_PATCH
    if argv in (["--version"], ["-V"]) and not applies_patch:
        # Before any import: 12 ms in all, most of it the interpreter's.
        _write_version()
        _leave(0)
    # Nothing of what the imports make is garbage: collecting costs 6 to 10 ms. The frontend turns
    # the collector on again once it is loaded.
    gc.disable()
    # 1 ms; the modules below would load it anyway.
    import signal  # noqa: PLC0415

    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        # An exception in the middle of an import may be printed and forgotten. There is nothing to clean up yet.
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(130))
    if applies_patch or argv[:1] == [_RUN_AS_APPLY_PATCH]:
        from codex_py.frontends.apply.envelope import main as run  # noqa: PLC0415
    else:
        from codex_py.cli.main import main as run  # noqa: PLC0415
    signal.signal(signal.SIGINT, interrupted)
    _leave(run(argv))


def _use_utf8() -> None:
    """Begin anew where the locale has another encoding: names in patches and on the wire are UTF-8.

    So it is with Codex, which knows no other. Python takes the locale `C` for UTF-8 by itself, so this is
    for old locales, and for systems that say PYTHONUTF8=0.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return
    # Where the interpreter was told so by an option, which would be told again, all stays as it is.
    if "utf8" not in sys._xoptions:  # pyright: ignore[reportPrivateUsage] -- documented all the same
        try:
            os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
        except OSError:
            # It does without names that the locale can not say.
            return


def _open_standard_descriptors() -> None:
    """Put /dev/null where we were started without, so that no file of ours gets the number 1 or 2."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is the missing one.
            os.open(os.devnull, os.O_RDWR)


def _write_version() -> None:
    try:
        os.write(1, f"codex-py {__version__}\n".encode())
    except OSError:
        # Nobody reads it: what a shell reports for SIGPIPE.
        _leave(141)


def _leave(code: int) -> None:
    """Exit at once: the interpreter's own way out costs 20 to 50 ms with our imports."""
    for stream in (sys.stdout, sys.stderr):
        try:
            # None where the program was started without it.
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]
                stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(code)


if __name__ == "__main__":
    main()
