"""What a profile denies reaches no model, by whichever reader of the agent's own."""

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import (
    ev_completed,
    ev_custom_tool_call,
    ev_function_call,
    ev_message,
)
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

SECRET = "s3cret-5e1f"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DONE = [*ev_message("Done."), ev_completed()]
PROFILE = """
default_permissions = "p"
[permissions.p]
extends = ":workspace"
[permissions.p.filesystem]
glob_scan_max_depth = 4
":workspace_roots" = { "sec" = "deny", "**/*.key" = "deny", "pic.png" = "deny", "locked" = "read" }
"""


@pytest.fixture
def work(place: Workplace) -> Workplace:
    cwd = place.cwd
    subprocess.run(["git", "init", "-q", str(cwd)], check=True)
    (cwd / "sec").mkdir()
    (cwd / "locked").mkdir()
    (cwd / "locked/x").write_text("open\n", encoding="ascii")
    for name in ("sec/AGENTS.md", "a.key"):
        (cwd / name).write_text(f"{SECRET}\n", encoding="ascii")
    (cwd / "pic.png").write_bytes(PNG)
    (cwd / "name").symlink_to("a.key")
    (cwd / "shot.png").symlink_to("pic.png")
    return place


def run(
    place: Workplace,
    *calls: list[Any],
    options: tuple[str, ...] = (),
    profile: str = PROFILE,
):
    """The requests of an `exec` in which the model makes these calls; none of them has the secret."""
    with ScriptedServer([*calls, DONE]) as server:
        place.configure(server)
        configure(place, profile)
        done = run_codex_py(
            ["exec", "--json", "--skip-git-repo-check", *options, "go"],
            place.home,
            place.cwd,
        )
        bodies = [request.body for request in server.requests]
    assert SECRET not in json.dumps(bodies)
    assert SECRET not in done.stdout.decode()
    return done, bodies


def configure(place: Workplace, profile: str) -> None:
    """Add a profile to the file of the provider: what is before its first table at the top."""
    path = place.home / "config.toml"
    top, bracket, tables = profile.partition("[")
    text = f"{top}\n{path.read_text(encoding='utf-8')}\n{bracket}{tables}"
    path.write_text(text, encoding="utf-8")


def outputs(bodies: list[Any]) -> str:
    return json.dumps([item for item in bodies[-1]["input"] if "output" in item])


def command(text: str, **more: Any) -> list[Any]:
    return [
        *ev_function_call("c", "exec_command", {"cmd": text, **more}),
        ev_completed(),
    ]


def patch(text: str) -> list[Any]:
    body = f"*** Begin Patch\n{text}\n*** End Patch"
    return [*ev_custom_tool_call("c", "apply_patch", body), ev_completed()]


def test_the_model_and_its_commands_are_told(work: Workplace) -> None:
    done, bodies = run(
        work, command("echo =$CODEX_PERMISSION_PROFILE=; cat a.key name sec/*")
    )
    assert done.returncode == 0
    told = json.dumps(bodies[0]["input"])
    assert "## Denied filesystem reads" in told
    assert f"- path `{work.cwd}/sec`" in told
    assert f"- glob `{work.cwd}/**/*.key`" in told
    assert 'escalatable=\\"false\\"><glob>' in told
    assert 'glob_scan_max_depth=\\"4\\"' in told
    assert "=p=" in outputs(bodies)
    assert "Permission denied" in outputs(bodies)


@pytest.mark.parametrize("mode", ["read-only", "workspace-write", "danger-full-access"])
def test_a_sandbox_mode_does_not_drop_the_denials(work: Workplace, mode: str) -> None:
    _, bodies = run(work, command("cat a.key name sec/AGENTS.md"), options=("-s", mode))
    assert "Permission denied" in outputs(bodies)


def test_the_bypass_drops_the_profile(work: Workplace) -> None:
    bypass = ("--dangerously-bypass-approvals-and-sandbox",)
    with pytest.raises(AssertionError, match=SECRET):
        run(work, command("cat a.key"), options=bypass)


def test_a_rule_that_lets_a_command_out_of_the_sandbox_drops_no_denial(
    work: Workplace,
) -> None:
    rules = work.home / "rules"
    rules.mkdir()
    text = 'prefix_rule(pattern=["cat"], decision="allow")\n'
    (rules / "default.rules").write_text(text, encoding="ascii")
    _, bodies = run(work, command("cat a.key name sec/AGENTS.md"))
    assert outputs(bodies).count("Permission denied") >= 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("*** Update File: a.key\n@@\n-x\n+y", "Permission denied"),
        ("*** Update File: name\n@@\n-x\n+y", "Permission denied"),
        ("*** Delete File: a.key", "patch"),
        ("*** Delete File: sec/AGENTS.md", "patch"),
        ("*** Add File: sec/new\n+x", "patch rejected"),
        ("*** Add File: new.key\n+x", "patch rejected"),
        ("*** Add File: a.key\n+x", "patch"),
        ("*** Update File: locked/x\n@@\n-open\n+y", "patch rejected"),
    ],
)
def test_no_patch_reads_or_writes_what_is_denied(
    work: Workplace, change: str, says: str
) -> None:
    _, bodies = run(work, patch(change), options=("-s", "workspace-write"))
    assert says in outputs(bodies)
    assert (work.cwd / "a.key").read_text(encoding="ascii") == f"{SECRET}\n"
    assert (work.cwd / "sec/AGENTS.md").exists()
    assert not (work.cwd / "new.key").exists()
    assert not (work.cwd / "sec/new").exists()


@pytest.mark.parametrize("name", ["pic.png", "shot.png", "sec/../pic.png", "other.png"])
def test_no_image_is_shown(work: Workplace, name: str) -> None:
    os.link(work.cwd / "pic.png", work.cwd / "other.png")
    _, bodies = run(
        work, [*ev_function_call("c", "view_image", {"path": name}), ev_completed()]
    )
    assert "unable to read image" in outputs(bodies)
    assert "Permission denied" in outputs(bodies)
    assert base64.b64encode(PNG).decode() not in json.dumps(bodies)


def test_no_instructions_and_no_skill_come_from_denied_files(work: Workplace) -> None:
    skill = work.cwd / ".agents/skills/one"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: one\ndescription: {SECRET}\n---\nbody", encoding="ascii"
    )
    (work.cwd / "b.key").write_text(SECRET, encoding="ascii")
    os.link(work.cwd / "b.key", work.cwd / "plain.md")
    (work.cwd / "AGENTS.md").write_text(
        "Read @a.key and @name and @plain.md.", encoding="ascii"
    )
    profile = PROFILE.replace('"sec" =', '".agents/skills" = "deny", "sec" =')
    _, bodies = run(
        work, command("ls sec", workdir="sec"), command("ls sec/x"), profile=profile
    )
    assert "Read @a.key" in json.dumps(bodies)
    # A denied file of instructions.
    (work.cwd / "AGENTS.md").unlink()
    (work.cwd / "AGENTS.md").symlink_to("a.key")
    run(work, profile=profile)


def test_no_role_and_no_base_prompt_come_from_denied_files(work: Workplace) -> None:
    agents = work.cwd / ".claude/agents"
    agents.mkdir(parents=True)
    text = f"---\nname: one\ndescription: {SECRET}\n---\nbody"
    (work.cwd / "b.key").write_text(text, encoding="ascii")
    (agents / "one.md").symlink_to("../../b.key")
    (work.cwd / ".codex").mkdir()
    run(work, options=("--trust",))
    settings = work.cwd / ".codex/config.toml"
    settings.write_text('model_instructions_file = "../a.key"\n', encoding="ascii")
    done, bodies = run(work, options=("--trust",))
    assert (done.returncode, bodies) == (78, [])


def test_no_copy_and_no_diff_of_a_turn_has_it(work: Workplace) -> None:
    script = "echo more >> visible; mkdir copy; cp -r a.key name sec copy"
    done, _ = run(work, command(script), options=("-s", "workspace-write"))
    end = json.loads(done.stdout.splitlines()[-1])
    assert "visible" in end["diff"]
    kept = work.home / "codex-py"
    for path in (path for path in kept.rglob("*") if path.is_file()):
        assert SECRET.encode() not in path.read_bytes()
    store = str(next(kept.rglob("objects")).parent)
    words = ["git", "--git-dir", store, "cat-file", "--batch-all-objects", "--batch"]
    listed = subprocess.run(words, capture_output=True, check=False)
    assert b"more" in listed.stdout
    assert SECRET.encode() not in listed.stdout


def test_a_review_shows_nothing_of_it(work: Workplace) -> None:
    subprocess.run(["git", "-C", str(work.cwd), "add", "-fA"], check=True)
    (work.cwd / "a.key").write_text(f"{SECRET} again\n", encoding="ascii")
    (work.cwd / "seen.txt").write_text("seen\n", encoding="ascii")
    answer = json.dumps(
        {
            "findings": [],
            "overall_correctness": "patch is correct",
            "overall_explanation": "fine",
            "overall_confidence_score": 1,
        }
    )
    with ScriptedServer([[*ev_message(answer), ev_completed()]]) as server:
        work.configure(server)
        configure(work, PROFILE)
        run_codex_py(["exec", "review", "--uncommitted"], work.home, work.cwd)
        told = json.dumps([request.body for request in server.requests])
    assert "seen.txt" in told
    assert SECRET not in told


def test_the_start_is_refused_for_a_hard_link_elsewhere(work: Workplace) -> None:
    os.link(work.cwd / "a.key", work.home / "outside")
    done, bodies = run(work, options=("-s", "read-only"))
    assert (done.returncode, bodies) == (6, [])
    assert b"a.key is denied, and has another name" in done.stdout + done.stderr


def test_an_option_denies_without_a_profile(work: Workplace) -> None:
    options = ("--deny", "**/*.key", "--deny", "sec")
    _, bodies = run(
        work, command("cat a.key sec/AGENTS.md"), options=options, profile=""
    )
    assert "Permission denied" in outputs(bodies)
    bypass = (*options, "--dangerously-bypass-approvals-and-sandbox")
    run(work, command("cat a.key sec/AGENTS.md"), options=bypass, profile="")


def test_the_secrets_of_a_user_are_denied_by_one_setting(work: Workplace) -> None:
    ssh = work.home.parent / ".ssh"
    ssh.mkdir()
    for path in (
        ssh / "x",
        work.cwd / ".env.local",
        work.cwd / "c.pem",
        work.cwd / "id_rsa",
    ):
        path.write_text(SECRET, encoding="ascii")
    script = f"cat .env.local c.pem id_rsa {ssh}/x; ls"
    _, bodies = run(work, command(script), profile='protection.secrets = "deny"\n')
    assert outputs(bodies).count("Permission denied") >= 3


def test_a_worktree_is_denied_what_its_original_is(work: Workplace) -> None:
    git = ["git", "-C", str(work.cwd), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "add", "-fA"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    script = f"pwd; cat a.key sec/AGENTS.md {work.cwd}/a.key {work.cwd}/sec/AGENTS.md"
    absolute = PROFILE.replace(
        '":workspace_roots" = {',
        f'"{work.cwd}/locked" = "deny"\n":workspace_roots" = {{',
    )
    _, bodies = run(
        work, command(f"{script} locked/x"), options=("--worktree=w",), profile=absolute
    )
    assert "worktrees" in outputs(bodies)
    # One of the user's own.
    subprocess.run([*git, "worktree", "add", "-q", str(work.home / "own")], check=True)
    run(
        Workplace(work.home, work.home / "own"),
        command(f"{script} locked/x"),
        profile=absolute,
    )


def test_sandbox_chooses_a_profile_and_keeps_the_exit_code(
    work: Workplace, tmp_path: Path
) -> None:
    text = PROFILE.replace('default_permissions = "p"', "")
    (work.home / "config.toml").write_text(text, encoding="utf-8")
    script = "echo $CODEX_PERMISSION_PROFILE; cat a.key; exit 7"
    done = run_codex_py(
        ["sandbox", "-P", "p", "--", "sh", "-c", script], work.home, work.cwd
    )
    assert (done.returncode, done.stdout) == (7, b"p\n")
    assert b"Permission denied" in done.stderr


def test_no_bundle_and_no_portable_session_has_it(
    work: Workplace, tmp_path: Path
) -> None:
    (work.cwd / "a.key").write_text("old\n", encoding="ascii")
    git = ["git", "-C", str(work.cwd), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "add", "-fA"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    for name in ("a.key", "b.key"):
        (work.cwd / name).write_text(SECRET, encoding="ascii")
    bundle, portable = tmp_path / "bundle", tmp_path / "portable"
    options = ("-s", "workspace-write", "--bundle", str(bundle))
    run(work, command("echo seen > seen.txt"), options=options)
    words = ["sessions", "export", "--last", "--portable", "-o", str(portable)]
    done = run_codex_py(words, work.home, work.cwd)
    assert b"Files did not come along" in done.stderr
    for path in (bundle, portable):
        assert b"seen" in path.read_bytes()
        assert SECRET.encode() not in path.read_bytes()
