"""`/mcp` in the terminal shows the servers and their tools."""

import json
from pathlib import Path

from tests.frontends.tui.terminals import IDLE, starting
from tests.support.mcp import odd_command
from tests.support.program import Workplace
from tests.support.server import ScriptedServer


def test_servers_and_their_tools_are_shown(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    place = Workplace(home, cwd)
    command, *args = odd_command("progress", tmp_path / "log")
    project = cwd / ".codex"
    project.mkdir()
    (project / "config.toml").write_text(
        f"[mcp_servers.good]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\nrequired = true\n"
        '[mcp_servers.bad]\ncommand = "no-such-program"\n'
        '[mcp_servers.idle]\ncommand = "x"\nenabled = false\n',
        encoding="utf-8",
    )
    with ScriptedServer([]) as server, starting(place) as start:
        program = start(server)
        program.wait_for(IDLE)
        program.wait_for("could not be started")
        program.type("/mcp verbos")
        program.press("enter")
        program.wait_for("write /mcp or /mcp verbose")
        # It is given back, to be corrected.
        program.wait_for("\u203a /mcp verbos\n")
        program.press("c-c")
        program.type("/mcp")
        program.press("enter")
        program.wait_for("good: ready (odd 1)")
        program.wait_for("echo, progress")
        program.wait_for("bad: failed")
        program.wait_for("idle: off")
        program.press("c-c", "c-c")
        assert program.wait() == 0
