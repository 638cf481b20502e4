"""The profile as text; only macOS can say what it does."""

from pathlib import Path

from codex_py.protocol.approval import DEFAULT_LIMITS
from codex_py.sandbox.backends.seatbelt import SeatbeltBackend, seatbelt_profile
from codex_py.sandbox.layout import Layout, Roots

READ_ONLY = seatbelt_profile(Layout((), (), (), offline=True))


def rules(view: Layout) -> str:
    """What a view adds to the profile of a read-only sandbox."""
    profile = seatbelt_profile(view)
    assert profile.startswith(READ_ONLY)
    return profile.removeprefix(READ_ONLY)


def test_everything_is_denied_but_reading() -> None:
    assert READ_ONLY.startswith("(version 1)\n(deny default)\n")
    assert "(allow file-read*)" in READ_ONLY
    assert "network" not in READ_ONLY
    assert READ_ONLY.count("(") == READ_ONLY.count(")")


def test_roots_are_writable_and_names_in_them_are_not() -> None:
    root, own = Path('/a/"b" (c).d'), Path('/a/"b" (c).d/own')
    assert rules(Layout((root,), (own,), (), offline=True, roots=Roots((root,)))) == (
        '(allow file-write* (subpath "/a/\\"b\\" (c).d"))\n'
        '(deny file-write-unlink (literal "/a/\\"b\\" (c).d"))\n'
        '(deny file-write* (subpath "/a/\\"b\\" (c).d/own"))\n'
        '(deny file-write* (regex #"^/a/.b.[ ][(]c[)][.]d/'
        "([.][gG][iI][tT]|[.][aA][gG][eE][nN][tT][sS]|[.][cC][oO][dD][eE][xX]|"
        "[.][cC][lL][aA][uU][dD][eE]|[.][aA][wW][sS])"
        '(/.*)?$"))\n'
    )


def test_the_network_is_there_where_it_is_allowed() -> None:
    assert "(allow network*)" in rules(Layout((), (), (), offline=False))


def test_the_command_is_run_by_sandbox_exec_with_the_profile() -> None:
    view = Layout((), (), (), offline=True)
    backend = SeatbeltBackend(DEFAULT_LIMITS, program="/bin/sh")
    command = backend.command(["ls", "-l"], view, Path("/"))
    assert command is not None
    assert command[:4] == ["/bin/sh", "-p", READ_ONLY, "--"]
    assert command[-2:] == ["ls", "-l"]
