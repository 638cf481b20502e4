"""Trust in hooks, in runs that nobody watches: what was not trusted is told and does not run."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from codex_py.config.config import load_config
from codex_py.config.hooks import enable, find_hooks, trust
from codex_py.testing import ev_completed, ev_message
from tests.support.codex import CODEX, hooks_of_codex, needs_codex
from tests.support.program import Workplace, environment, jsonl
from tests.support.server import ScriptedServer

DONE = [*ev_message("done"), ev_completed()]
OPTIONS = ("exec", "--json", "--skip-git-repo-check")


def write_hooks(place: Workplace, *names: str) -> Path:
    """A hook for prompts for each name, which it adds to `ran` in the home."""
    handlers = [
        {"type": "command", "command": f"echo {name} >> '{place.home / 'ran'}'"}
        for name in names
    ]
    path = place.home / "hooks.json"
    path.write_text(
        json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": handlers}]}}),
        encoding="utf-8",
    )
    return path


def ran(place: Workplace) -> list[str]:
    """The hooks that ran since this was asked last."""
    path = place.home / "ran"
    names = path.read_text("utf-8").split() if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(names)


def run(
    place: Workplace,
    *args: str,
    program: Sequence[str] = (sys.executable, "-m", "codex_py"),
):
    return subprocess.run(
        [*program, *OPTIONS, *args, "go"],
        cwd=place.cwd,
        env=environment(place.home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=True,
    )


def warnings(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    items = [event.get("item", {}) for event in jsonl(done.stdout)]
    return [item["message"] for item in items if item.get("type") == "error"]


def test_a_hook_that_was_not_reviewed_is_told_and_runs_only_where_that_is_asked_for(
    place: Workplace,
) -> None:
    path = write_hooks(place, "new", "off")
    with ScriptedServer([DONE] * 3) as server:
        place.configure(server)
        config = load_config(cwd=place.cwd, environment=environment(place.home))
        enable(place.home, find_hooks(config, {}).found[1], enabled=False)
        (warning,) = warnings(run(place))
        assert f"(1, in {path}) do not run" in warning
        assert ran(place) == []
        (warning,) = warnings(run(place, "--dangerously-bypass-hook-trust"))
        assert "run because of --dangerously-bypass-hook-trust" in warning
        assert ran(place) == ["new"]
        assert warnings(run(place, "--disable", "hooks")) == []
        assert ran(place) == []


def test_hooks_of_an_untrusted_project_do_not_run_even_where_all_do(
    place: Workplace,
) -> None:
    home_file = write_hooks(place, "project")
    (place.cwd / ".codex").mkdir()
    home_file.rename(place.cwd / ".codex" / "hooks.json")
    with ScriptedServer([DONE] * 2) as server:
        place.configure(server)
        run(place, "--dangerously-bypass-hook-trust")
        assert ran(place) == []
        run(place, "--dangerously-bypass-hook-trust", "--trust")
        assert ran(place) == ["project"]


def test_a_damaged_file_of_hooks_is_told_and_the_run_goes_on(place: Workplace) -> None:
    path = place.home / "hooks.json"
    path.write_text("{", encoding="utf-8")
    with ScriptedServer([DONE]) as server:
        place.configure(server)
        (warning,) = warnings(run(place))
    assert warning.startswith(f"failed to parse hooks config {path}: ")


def test_a_misspelt_event_stops_the_start_before_a_request(place: Workplace) -> None:
    path = place.home / "hooks.json"
    path.write_text('{"hooks": {"PreTolUse": []}}', encoding="utf-8")
    with ScriptedServer([]) as server:
        outcome = place.run(server)
    assert (outcome.code, outcome.types) == (78, [])
    assert f"{path}:1: there is no hook event `PreTolUse`" in outcome.err
    assert "did you mean `PreToolUse`?" in outcome.err


@needs_codex
def test_hooks_that_one_program_trusts_run_in_the_other(place: Workplace) -> None:
    assert CODEX is not None
    write_hooks(place, "ours", "theirs", "new", "off")
    with ScriptedServer([DONE] * 2, check_prefix=False) as server:
        path = place.home / "config.toml"
        path.write_text(
            server.config_toml() + "# mine\n[analytics]\nenabled = false\n",
            encoding="utf-8",
        )
        config = load_config(cwd=place.cwd, environment=environment(place.home))
        found = find_hooks(config, {}).found
        trust(place.home, [found[0], found[3]])
        enable(place.home, found[3], enabled=False)
        theirs = hooks_of_codex(environment(place.home), place.cwd)[1]
        with path.open("a", encoding="utf-8") as file:
            # As its terminal appends it.
            file.write(
                f'\n[hooks.state."{theirs["key"]}"]\ntrusted_hash = "{theirs["currentHash"]}"\n'
            )
        run(place, program=[CODEX])
        assert ran(place) == ["ours", "theirs"]
        run(place)
        assert ran(place) == ["ours", "theirs"]
    text = path.read_text(encoding="utf-8")
    assert "# mine" in text
    assert len(tomllib.loads(text)["hooks"]["state"]) == 3
