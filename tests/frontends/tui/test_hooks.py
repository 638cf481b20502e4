"""What the terminal asks about hooks, and `/hooks`.

Tests `frontends/tui/commands/hooks.py`.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from codex_py.testing import ev_completed, ev_message
from tests.frontends.tui.terminals import IDLE, Start, leave
from tests.support.program import Workplace
from tests.support.server import ScriptedServer

HELLO = [*ev_message("Hello."), ev_completed()]
AGAIN = [*ev_message("Again."), ev_completed()]
QUESTION = "Hooks need review"
ASKED = "1. Review hooks"


def write_hooks(path: Path, *commands: str) -> Path:
    """`hooks.json` with these hooks for prompts."""
    handlers = [{"type": "command", "command": command} for command in commands]
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": handlers}]}}),
        encoding="utf-8",
    )
    return path


def states(place: Workplace) -> dict[str, Any]:
    """What `config.toml` says about hooks, by group and handler."""
    config = tomllib.loads((place.home / "config.toml").read_text(encoding="utf-8"))
    entries = config.get("hooks", {}).get("state", {})
    return {key.partition("_submit:")[2]: entry for key, entry in entries.items()}


def test_hooks_that_are_trusted_at_the_start_run_and_are_not_asked_about_again(
    start: Start, place: Workplace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    path = write_hooks(
        place.home / "hooks.json", f"echo one >> '{ran}'", f"echo two >> '{ran}'"
    )
    with ScriptedServer([HELLO, AGAIN]) as server:
        program = start(server, "go")
        program.wait_for(ASKED)
        assert "2 hooks are new or changed." in program.text
        program.type("2")
        program.wait_for("Hello.")
        assert sorted(ran.read_text("utf-8").split()) == ["one", "two"]
        assert all(set(entry) == {"trusted_hash"} for entry in states(place).values())
        assert set(states(place)) == {"0:0", "0:1"}
        write_hooks(path, f"echo one >> '{ran}'", f"echo changed >> '{ran}'")
        leave(program)
        # The server's entry is written anew, so the trust is given again.
        trusted = states(place)["0:0"]["trusted_hash"]
        state = f'hooks.state={{"{path}:user_prompt_submit:0:0"={{trusted_hash="{trusted}"}}}}'
        program = start(server, "-c", state, "on")
        program.wait_for(ASKED)
        assert "1 hook is new or changed." in program.text
        program.type("3")
        program.wait_for("Again.")
        assert sorted(ran.read_text("utf-8").split()) == ["one", "one", "two"]


def test_enter_alone_trusts_nothing(
    start: Start, place: Workplace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    write_hooks(place.home / "hooks.json", f"touch '{ran}'")
    with ScriptedServer([HELLO]) as server:
        program = start(server, "go")
        program.wait_for(ASKED)
        program.press("enter")
        program.wait_for("> UserPromptSubmit  new  touch")
        program.press("enter")
        program.wait_for("> 3. Back")
        assert str(place.home / "hooks.json") in program.text.replace("\n  ", "")
        program.press("enter")
        program.wait_for("Enter picks")
        program.press("esc")
        program.wait_for(ASKED)
        program.press("esc")
        program.wait_for("Hello.")
        assert states(place) == {}
        assert not ran.exists()


def test_each_hook_can_be_decided_on_at_the_start(
    start: Start, place: Workplace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    commands = [f"echo {name} >> '{ran}'" for name in ("first", "second")]
    write_hooks(place.home / "hooks.json", *commands)
    with ScriptedServer([HELLO]) as server:
        program = start(server, "go")
        program.wait_for(ASKED)
        program.type("1")
        program.wait_for("> UserPromptSubmit  new  echo first")
        program.press("enter")
        program.wait_for("1. Trust it")
        program.type("t")
        program.wait_for("> UserPromptSubmit  new  echo second")
        program.press("enter")
        program.wait_for("2. Switch it off")
        program.type("o")
        program.wait_for("Hello.")
        assert ran.read_text("utf-8") == "first\n"
        assert set(states(place)["0:0"]) == {"trusted_hash"}
        assert states(place)["0:1"] == {"enabled": False}


def test_text_typed_at_the_question_about_hooks_is_a_prompt(
    start: Start, place: Workplace
) -> None:
    write_hooks(place.home / "hooks.json", "true")
    with ScriptedServer([HELLO]) as server:
        program = start(server)
        program.wait_for(ASKED)
        program.type("say hello")
        program.wait_for(f"{QUESTION} (Tab to answer)")
        program.wait_for("\u203a say hello")
        program.settle(0.5)
        program.press("enter")
        program.wait_for(ASKED)
        program.type("3")
        program.wait_for("Hello.")
        assert "\u203a say hello" in program.text


def test_a_low_screen_shows_what_a_hook_runs(start: Start, place: Workplace) -> None:
    write_hooks(place.home / "hooks.json", "true " + "x" * 5000 + " THE-END")
    with ScriptedServer([]) as server:
        program = start(server, columns=40, rows=10)
        program.wait_for("3. Continue without trusting")
        program.type("1")
        program.wait_for("> UserPromptSubmit")
        program.press("enter")
        program.wait_for("lines (v shows all)")
        program.wait_for("runs: true")
        program.type("v")
        program.wait_for("Esc leaves")
        program.press("end")
        program.wait_for("THE-END")
        program.press("esc")
        program.wait_for("lines (v shows all)")
        program.press("c-c")
        program.wait_for("Enter picks")
        program.press("c-c")
        program.wait_for(ASKED)
        program.press("c-c")
        program.wait_for(IDLE)
        leave(program)


def test_a_hook_that_is_trusted_or_switched_off_in_a_session_is_so_at_once(
    start: Start, place: Workplace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    write_hooks(place.home / "hooks.json", f"echo x >> '{ran}'")
    with ScriptedServer([HELLO, AGAIN]) as server:
        program = start(server)
        program.wait_for(ASKED)
        program.type("3")
        program.wait_for(IDLE)
        program.type("/hooks")
        program.press("enter")
        program.wait_for("> UserPromptSubmit  new")
        program.press("enter")
        program.wait_for("1. Trust it")
        program.type("t")
        program.wait_for("> UserPromptSubmit  trusted")
        program.press("esc")
        program.wait_for("Ask codex-py")
        program.type("go")
        program.press("enter")
        program.wait_for("Hello.")
        assert ran.read_text("utf-8") == "x\n"
        program.wait_for("Ask codex-py")
        program.type("/hooks")
        program.press("enter")
        program.wait_for("> UserPromptSubmit  trusted")
        program.press("enter")
        program.wait_for("1. Switch it off")
        program.type("o")
        program.wait_for("> UserPromptSubmit  disabled")
        program.press("esc")
        program.wait_for("Ask codex-py")
        program.type("on")
        program.press("enter")
        program.wait_for("Again.")
        assert ran.read_text("utf-8") == "x\n"
        assert states(place)["0:0"]["enabled"] is False


def test_hooks_of_a_session_that_began_without_any_run_in_the_next_one(
    start: Start, place: Workplace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    with ScriptedServer([HELLO]) as server:
        program = start(server)
        program.wait_for(IDLE)
        program.type("/hooks")
        program.press("enter")
        program.wait_for("There are no hooks.")
        write_hooks(place.home / "hooks.json", f"echo x >> '{ran}'")
        program.type("/hooks")
        program.press("enter")
        program.wait_for("> UserPromptSubmit  new")
        program.press("enter")
        program.wait_for("1. Trust it")
        program.type("t")
        program.wait_for("> UserPromptSubmit  trusted")
        program.press("esc")
        program.wait_for("This session began without hooks.")
        program.type("/new")
        program.press("enter")
        program.wait_for("Another conversation")
        program.type("go")
        program.press("enter")
        program.wait_for("Hello.")
        assert ran.read_text("utf-8") == "x\n"


def test_hooks_that_changed_before_the_next_session_are_told(
    start: Start, place: Workplace
) -> None:
    with ScriptedServer([]) as server:
        program = start(server)
        program.wait_for(IDLE)
        write_hooks(place.home / "hooks.json", "true")
        program.type("/new")
        program.press("enter")
        program.wait_for("Hooks that are new or changed")


def test_hooks_of_an_untrusted_project_are_not_shown(
    start: Start, place: Workplace
) -> None:
    write_hooks(place.cwd / ".codex" / "hooks.json", "true")
    with ScriptedServer([]) as server:
        program = start(server, trusted=False)
        program.wait_for("Do you trust what is in")
        program.type("n")
        program.wait_for("read-only")
        program.type("/hooks")
        program.press("enter")
        program.wait_for("There are no hooks.")
        assert QUESTION not in program.text


def test_hooks_of_a_project_are_asked_about_once_it_is_trusted(
    start: Start, place: Workplace
) -> None:
    write_hooks(place.cwd / ".codex" / "hooks.json", "true")
    with ScriptedServer([]) as server:
        program = start(server, trusted=False)
        program.wait_for("1. Yes, trust it")
        program.type("y")
        program.wait_for(ASKED)
        program.type("2")
        program.wait_for("workspace-write")
        assert set(states(place)) == {"0:0"}


def test_nothing_is_asked_if_all_hooks_run(
    start: Start, place: Workplace, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    write_hooks(place.home / "hooks.json", f"touch '{ran}'")
    with ScriptedServer([HELLO]) as server:
        program = start(server, "--dangerously-bypass-hook-trust", "go")
        program.wait_for("Hello.")
        assert QUESTION not in program.text
        assert ran.exists()


def test_trust_that_cannot_be_stored_is_told_and_the_session_begins(
    start: Start, place: Workplace
) -> None:
    write_hooks(place.home / "hooks.json", "true")
    with ScriptedServer([HELLO]) as server:
        place.configure(server)
        config = place.home / "config.toml"
        # Nothing fits beside it: the name of the new file would make the path too long, for root too.
        folder = place.home
        while (room := 4_080 - len(str(folder))) > 1:
            folder /= "x" * min(200, room - 1)
            folder.mkdir()
        (folder / "c").write_bytes(config.read_bytes())
        config.unlink()
        config.symlink_to(folder / "c")
        program = start(server, "go")
        program.wait_for(ASKED)
        program.type("2")
        program.wait_until(
            lambda: "cannot be written" in " ".join(program.text.split())
        )
        program.wait_for("Hello.")


def test_a_hook_that_takes_long_is_named_until_it_ends(
    start: Start, place: Workplace
) -> None:
    go = place.home / "go"
    handlers = [
        {
            "type": "command",
            "command": f"until [ -e {go}{n} ]; do sleep 0.05; done",
            **said,
        }
        for n, said in enumerate(({"statusMessage": "Checking the prompt"}, {}))
    ]
    text = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": handlers}]}})
    (place.home / "hooks.json").write_text(text, encoding="utf-8")
    with ScriptedServer([HELLO]) as server:
        program = start(server, "--dangerously-bypass-hook-trust", "go")
        program.wait_for("Checking the prompt (")
        Path(f"{go}0").touch()
        program.wait_for("hook: UserPromptSubmit (")
        Path(f"{go}1").touch()
        program.wait_for("Hello.")
        assert "hook: " not in program.text
