"""The headers that name this program to a server."""

import os

from codex_py.version import __version__


def program_names(originator: str) -> dict[str, str]:
    """Return the headers that name the program. `originator`: the program that the user has started."""
    system = os.uname()
    program = f"{originator}/{__version__}"
    return {
        "originator": originator,
        "user-agent": f"{program} ({system.sysname}; {system.machine})",
    }


def own_names() -> dict[str, str]:
    """Return the headers that name this program to ChatGPT, whichever program Codex would be.

    OpenAI wants other programs than Codex to say their own name.
    """
    return program_names("codex_py")
