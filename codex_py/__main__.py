"""The start and the end of the program."""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 -- a checkout can be run with any Python
    sys.exit("codex-py needs Python 3.11 or newer")  # pyright: ignore[reportUnreachable]
if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` puts the working directory first, and a repository may hold a `json.py`.
    del sys.path[0]
if os.environ.get("PYTHONPATH") and not sys.flags.ignore_environment:
    # `PYTHONPATH` is for commands, not for us: a project may be httpx, or have a `json.py`. Folders
    # of our own package and of Python stay on the path even if it lists them.
    import site

    _library = os.__file__.rpartition("/")[0]
    _names = os.environ["PYTHONPATH"].split(os.pathsep)
    _listed = set(map(os.path.abspath, _names))
    _listed -= {
        _library,
        f"{_library}/lib-dynload",
        site.USER_SITE,
        *site.getsitepackages(),
        __file__.rpartition("/codex_py/")[0],
    }
    sys.path[:] = [folder for folder in sys.path if folder not in _listed]

from codex_py.version import __version__

_APPLY_PATCH = {"apply_patch", "applypatch"}
"""The names of symbolic links under which the program only applies a patch, as Codex does."""
_RUN_AS_APPLY_PATCH = "--codex-run-as-apply-patch"


def main() -> None:
    """Run the program and leave the process.

    A bug ends it with a traceback instead, as in any Python program.
    """
    try:
        _leave(_run(sys.argv[1:]))
    except KeyboardInterrupt:
        _leave(130)


def _run(argv: list[str]) -> int:
    """Run the command line, and return the exit code."""
    _use_utf8()
    _open_standard_descriptors()
    is_apply_patch = sys.argv[0].rpartition("/")[2] in _APPLY_PATCH
    if argv in (["--version"], ["-V"]) and not is_apply_patch:
        return _write_version()
    # `--version` takes 12 ms, most of it for the interpreter.
    from codex_py.cli.start import start  # 3 ms

    is_apply_patch = is_apply_patch or argv[:1] == [_RUN_AS_APPLY_PATCH]
    return start(argv, as_apply_patch=is_apply_patch)


def _use_utf8() -> None:
    """Restart the program in UTF-8 if the locale has another encoding.

    Names in patches and on the wire are UTF-8, and Codex has no other encoding either. Python
    itself treats the locale `C` as UTF-8, so this is for old locales, and for systems with
    PYTHONUTF8=0.
    """
    if sys.getfilesystemencoding() == "utf-8":
        return
    # The restart would repeat an interpreter option that asks for another encoding, so do not
    # restart then. `_xoptions` is private by its name, but documented.
    if "utf8" not in sys._xoptions:  # pyright: ignore[reportPrivateUsage]
        try:
            os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
        except OSError:
            # Names that the locale cannot spell will fail.
            return


def _open_standard_descriptors() -> None:
    """Open /dev/null for each missing standard descriptor.

    Otherwise another file would get the number 1 or 2.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is the missing one.
            os.open(os.devnull, os.O_RDWR)


def _write_version() -> int:
    try:
        os.write(1, f"codex-py {__version__}\n".encode())
    except OSError:
        # The reader is gone. A shell reports SIGPIPE with this code.
        return 141
    return 0


def _leave(code: int) -> None:
    """Exit at once: the interpreter's normal exit takes 20 to 50 ms with our imports."""
    for stream in (sys.stdout, sys.stderr):
        try:
            # The stream is None if the program was started without it.
            if stream is not None:  # pyright: ignore[reportUnnecessaryComparison]
                stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(code)


if __name__ == "__main__":
    main()
