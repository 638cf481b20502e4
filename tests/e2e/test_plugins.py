"""What a plugin brings to sessions of the real program."""

from codex_py.testing import ev_completed, ev_message
from tests.e2e.test_skills import bodies, lists
from tests.support.plugins import installed, write_plugin
from tests.support.program import Outcome, Workplace, run_codex_py
from tests.support.server import ScriptedServer

SAYS = [*ev_message("Done."), ev_completed()]
NOTE = '"$CLAUDE_PLUGIN_ROOT"/bin/note ${CODEX_PLUGIN_ROOT} $CLAUDE_PROJECT_DIR'
FILES = {
    "hooks/hooks.json": {
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": NOTE}]}]}
    },
    "bin/note": '#!/bin/sh\necho "$@" >> "$HOME/noted"\n',
    "agents/judge.md": "---\nname: judge\ndescription: It judges\ntools: Read\n---\nJudge.\n",
    "skills/hello/SKILL.md": "---\nname: hello\ndescription: Say hello\n---\nHello.\n",
}


def errors(outcome: Outcome) -> list[str]:
    return [item["message"] for item in outcome.items if item["type"] == "error"]


def add(place: Workplace, server: ScriptedServer) -> None:
    place.configure(server)
    source = write_plugin(place.home.parent / "a source", FILES)
    (source / "bin" / "note").chmod(0o755)
    done = run_codex_py(["plugin", "add", str(source), "--yes"], place.home, place.cwd)
    assert done.returncode == 0, done.stderr


def test_hooks_skills_and_agents_of_a_plugin_are_used(place: Workplace) -> None:
    with ScriptedServer([SAYS]) as server:
        add(place, server)
        outcome = place.rerun("Use $tools:hello.")
    assert outcome.items == [{"id": "item_0", "type": "agent_message", "text": "Done."}]
    root = place.home / "codex-py" / "plugins" / "tools"
    assert (place.home.parent / "noted").read_text("utf-8") == f"{root} {place.cwd}\n"
    (told,) = lists(server.requests[0])
    assert "- tools:hello: Say hello (file: r0/skills/hello/SKILL.md)" in told
    assert bodies(server.requests[0]) == ["tools:hello"]
    assert "tools:judge: {\\nIt judges" in server.requests[0].raw.decode()


def test_a_changed_plugin_is_not_used_and_that_is_told(place: Workplace) -> None:
    note = place.home / "codex-py" / "plugins" / "tools" / "bin" / "note"
    with ScriptedServer([SAYS]) as server:
        add(place, server)
        note.chmod(0o700)
        note.write_text("#!/bin/sh\ntouch $HOME/noted\n", encoding="utf-8")
        outcome = place.rerun("Use $tools:hello.")
    assert errors(outcome) == [
        "The plugin tools is not used: bin/note changed since it was added;"
        " to use it as it is now, remove it and add it again."
    ]
    assert not (place.home.parent / "noted").exists()
    assert (lists(server.requests[0]), bodies(server.requests[0])) == ([], [])


def test_hooks_that_were_not_shown_do_not_run(place: Workplace) -> None:
    root = installed(place.home, FILES)
    with ScriptedServer([SAYS]) as server:
        outcome = place.run(server, "Hello")
    assert not (place.home.parent / "noted").exists()
    assert any(str(root) in message for message in errors(outcome))


def test_exec_sends_a_slash_command_as_it_is_typed(place: Workplace) -> None:
    """As Codex 0.169 does."""
    prompts = place.home / "prompts"
    prompts.mkdir()
    (prompts / "a.md").write_text("Other.", encoding="utf-8")
    with ScriptedServer([SAYS]) as server:
        place.run(server, "/prompts:a b")
    assert server.requests[0].input[-1]["content"] == [
        {"type": "input_text", "text": "/prompts:a b"}
    ]
