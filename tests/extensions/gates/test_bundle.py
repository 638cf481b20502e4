"""Change bundles: `exec --bundle` in one checkout, `apply` in another.

Tests `extensions/gates/change_bundle.py`, `app/compared_repository.py` and `patch/bundle.py`.
"""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codex_py.patch.bundle import written_bundle
from tests.patch.trees import git
from tests.support.hooks import DONE, command, configure
from tests.support.privileges import heed_permissions, needs_permissions
from tests.support.program import Outcome, Workplace, run_codex_py
from tests.support.server import ScriptedServer

WORK = (
    "printf 'a\\nB\\nc\\n' > text; head -c 9 /dev/urandom > binary; rm gone; ln -s text link;"
    " mkdir sub; printf 'x' > $'sub/é \\xff'; echo log > ignored.log; chmod +x mode; echo 2 >> dirty"
)


KEY_VARIABLE = "CODEX_PY_BUNDLE_KEY"
EVIDENCE = ("--require-evidence", "printf*")


@pytest.fixture
def repository(place: Workplace) -> Path:
    """The working folder: a commit, and changes that are not committed."""
    root = place.cwd
    files = {
        "text": b"a\nb\nc\n",
        "binary": b"\0old",
        "gone": b"g\n",
        "mode": b"m\n",
        "dirty": b"0\n",
    }
    for name, data in files.items():
        (root / name).write_bytes(data)
    (root / ".gitignore").write_text("*.log\n", encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "first")
    (root / "dirty").write_text("0\n1\n", encoding="utf-8")
    (root / "untracked").write_text("u\n", encoding="utf-8")
    return root


def contents(root: Path) -> dict[str, Any]:
    return {
        os.fsencode(path.relative_to(root)).decode(errors="replace"): (
            path.readlink()
            if path.is_symlink()
            else (path.read_bytes(), os.access(path, os.X_OK))
        )
        for path in sorted(root.rglob("*"))
        if (path.is_file() or path.is_symlink())
        and ".git" not in path.relative_to(root).parts
    }


def made(
    place: Workplace, bundle: Path, *options: str, script: Any = None, **env: str
) -> tuple[Outcome, dict[str, Any]]:
    with ScriptedServer(script or [command(WORK), DONE]) as server:
        outcome = place.run(server, "--bundle", str(bundle), *options, "go", env=env)
    text = bundle.read_text(encoding="utf-8")
    return outcome, json.loads(text) if text else {}


def apply(
    place: Workplace, root: Path, bundle: Path, *options: str, **env: str
) -> tuple[int, str, str]:
    done = run_codex_py(["apply", str(bundle), *options], place.home, root, env)
    return (
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )


def test_all_changes_reach_another_checkout_and_are_undone_as_one(
    place: Workplace, repository: Path, tmp_path: Path
) -> None:
    other, bundle = tmp_path / "other", tmp_path / "out.cxb"
    shutil.copytree(repository, other, symlinks=True)
    before = contents(other)
    index = (repository / ".git/index").read_bytes()
    outcome, fields = made(
        place, bundle, "--verify-tries", "0", "--verify", "true", *EVIDENCE
    )
    assert outcome.code == 3
    assert (repository / ".git/index").read_bytes() == index
    head = git(repository, "rev-parse", "HEAD").decode().strip()
    names = [file["path"] for file in fields["files"]]
    assert names == ["binary", "dirty", "gone", "link", "mode", "sub/é \udcff", "text"]
    blobs = {
        file["path"]: (file["before"] is None, file["after"] is None)
        for file in fields["files"]
    }
    assert blobs["gone"] == (False, True)
    assert blobs["link"] == (True, False)
    assert (fields["version"], fields["base"], fields["model"]) == (1, head, "gpt-5.5")
    assert fields["session"] == outcome.events[0]["thread_id"]
    assert fields["prompt_sha256"] == hashlib.sha256(b"go").hexdigest()
    assert [gate["status"] for gate in fields["gates"]] == ["passed", "failed"]
    assert len(fields["evidence"]) == 1
    (other / "folder").mkdir()
    # A gate has failed.
    code, _, stderr = apply(place, other, bundle, "--check")
    assert (
        code,
        "gates failed in the run that made the bundle: require-evidence" in stderr,
    ) == (
        3,
        True,
    )
    assert apply(place, other, bundle, "--check", "--force")[0] == 0
    assert contents(other) == before
    code, stdout, stderr = apply(place, other / "folder", bundle, "--force", "--json")
    assert code == 0, stderr
    told = json.loads(stdout)
    assert (told["bundle"]["session"], "diff" in told["bundle"]) == (
        fields["session"],
        False,
    )
    after = contents(repository)
    del after["ignored.log"]
    assert contents(other) == after
    undone = run_codex_py(["undo"], place.home, other)
    assert undone.returncode == 0, undone.stderr
    assert contents(other) == before


def test_files_that_differ_are_refused_or_merged(
    place: Workplace, repository: Path, tmp_path: Path
) -> None:
    other, bundle = tmp_path / "other", tmp_path / "out.cxb"
    text = "".join(f"{line}\n" for line in range(20))
    (repository / "text").write_text(text, encoding="utf-8")
    git(repository, "add", "text")
    shutil.copytree(repository, other, symlinks=True)
    made(
        place, bundle, script=[command("sed -i s/^3$/three/ text; echo >> mode"), DONE]
    )
    (other / "text").write_text(text.replace("18", "eighteen"), encoding="utf-8")
    before = contents(other)
    code, _, stderr = apply(place, other, bundle)
    assert (code, "text: it is not as before the run" in stderr) == (7, True)
    assert contents(other) == before
    assert apply(place, other, bundle, "--3way")[0] == 0
    merged = text.replace("18", "eighteen").replace("\n3\n", "\nthree\n")
    assert (other / "text").read_text(encoding="utf-8") == merged


def test_a_bundle_that_was_tampered_with_is_refused(
    place: Workplace, repository: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "out.cxb"
    key = {KEY_VARIABLE: "0123456789abcdef"}
    shows_key = command(f"echo >> text; env | grep {KEY_VARIABLE} && touch leaked")
    _, fields = made(place, bundle, script=[shows_key, DONE], **key)
    assert not (repository / "leaked").exists()
    git(repository, "checkout", "-q", "text")
    before = contents(repository)
    whole = bundle.read_text(encoding="utf-8")
    unsigned = written_bundle(
        {
            k: v
            for k, v in fields.items()
            if k not in {"diff", "digest", "hmac", "format", "version"}
        },
        fields["diff"].encode(),
        b"",
    )
    for text, env, reason in [
        (whole[:-20], {}, "is damaged"),
        (whole.replace("+\\n", "+x\\n"), {}, "its digest is another one"),
        (
            whole.replace('"version": 1', '"version": 2'),
            {},
            "is of version 2, and not 1",
        ),
        (
            whole.replace('"hmac": "sha256:', '"hmac": "sha256:0'),
            key,
            "is not signed with",
        ),
        (
            whole,
            {KEY_VARIABLE: "0123456789abcdeg"},
            "is not signed with the key in CODEX_PY_BUNDLE_KEY",
        ),
        (unsigned, key, "is not signed with the key"),
        (
            '{"format": "codex-py change bundle", "version": 1, "digest": "sha256:"}',
            {},
            "digest",
        ),
    ]:
        bundle.write_text(text, encoding="utf-8")
        code, _, stderr = apply(place, repository, bundle, **env)
        assert (code, reason in stderr, stderr.count("Error")) == (65, True, 1), stderr
        assert contents(repository) == before
    bundle.write_text(json.dumps(json.loads(whole), indent=2), encoding="utf-8")
    assert apply(place, repository, bundle, **key)[0] == 0


@pytest.mark.parametrize(
    ("name", "code"), [("../outside", 7), (".git/hooks/x", 7), ("a/.git/config", 7)]
)
def test_a_bundle_stays_in_its_place(
    place: Workplace, repository: Path, tmp_path: Path, name: str, code: int
) -> None:
    blob = "587be6b4c3f93f93c489c0111bba5596147a26cb"
    diff = (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex {'0' * 40}..{blob}\n"
        f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
    )
    facts: dict[str, Any] = dict.fromkeys(
        ("program", "time", "session", "model", "base")
    )
    facts |= {"gates": [], "files": [{"path": name, "before": None, "after": blob}]}
    bundle = tmp_path / "bundle"
    bundle.write_text(written_bundle(facts, diff.encode(), b""), encoding="utf-8")
    assert apply(place, repository, bundle)[0] == code
    assert not (tmp_path / "outside").exists()
    bad_ones: list[dict[str, Any]] = [
        {"gates": [1]},
        {"files": [{"path": []}]},
        {"files": 3},
        {"model": {}, "gates": None},
    ]
    for bad in bad_ones:
        bundle.write_text(
            written_bundle({**facts, **bad}, diff.encode(), b""), encoding="utf-8"
        )
        assert apply(place, repository, bundle)[0] == 65


@pytest.mark.parametrize("left_out", ["text", "other", None])
def test_a_diff_does_what_the_list_of_files_says(
    place: Workplace, repository: Path, tmp_path: Path, left_out: str | None
) -> None:
    bundle = tmp_path / "out.cxb"
    script = [command("echo > other; echo >> text; rm gone link; echo > link"), DONE]
    (repository / "link").symlink_to("text")
    _, fields = made(place, bundle, script=script)
    git(repository, "checkout", "-q", ".")
    (repository / "other").unlink()
    (repository / "link").unlink()
    (repository / "link").symlink_to("text")
    assert apply(place, repository, bundle, "--check")[0] == 0
    parts = fields["diff"].split("diff --git ")
    files = {each["path"]: each for each in fields["files"]}
    if left_out is None:
        files["text"]["after"] = files["text"]["before"]
    else:
        parts = [part for part in parts if not part.startswith(f"a/{left_out} ")]
    del fields["digest"], fields["format"], fields["version"], fields["diff"]
    text = written_bundle(fields, "diff --git ".join(parts).encode(), b"")
    bundle.write_text(text, encoding="utf-8")
    before = contents(repository)
    code, _, stderr = apply(place, repository, bundle)
    assert (code, "is damaged: its diff does something else" in stderr) == (65, True), (
        stderr
    )
    assert contents(repository) == before


def test_a_run_that_hooks_refused_to_the_end_is_not_applied(
    place: Workplace, repository: Path, tmp_path: Path
) -> None:
    bundle, key = tmp_path / "out.cxb", "--dangerously-bypass-hook-trust"
    configure(place, {"Stop": ["echo no >&2; exit 2"]})
    (place.home / "codex-py").mkdir()
    (place.home / "codex-py/config.toml").write_text(
        "hooks.stop_rounds = 0\n", encoding="utf-8"
    )
    outcome, fields = made(place, bundle, key, script=[command("echo >> text"), DONE])
    assert (outcome.code, fields["exit_code"], fields["gates"]) == (3, 3, [])
    git(repository, "checkout", "-q", "text")
    code, _, stderr = apply(place, repository, bundle)
    assert (
        code,
        "the run that made the bundle ended with exit code 3; see --force" in stderr,
    ) == (
        3,
        True,
    )
    assert apply(place, repository, bundle, "--force")[0] == 0


@needs_permissions
def test_no_command_can_write_to_what_is_compared_if_the_home_cannot_be_written(
    place: Workplace, repository: Path, tmp_path: Path
) -> None:
    forge = (
        f"for i in .git/git.*/index {tmp_path}/git.*/index; do"
        f" test -e $i && touch {repository}/found; echo > $i && touch {repository}/forged; done"
    )
    bundle = tmp_path / "out.cxb"
    with ScriptedServer([command(forge), DONE]) as server:
        place.configure(server)
        place.home.chmod(0o500)
        options = (
            "--ephemeral",
            "-s",
            "workspace-write",
            "--bundle",
            str(bundle),
            "go",
        )
        started = place.start(
            *options, env={"TMPDIR": str(tmp_path)}, limit=heed_permissions
        )
        with started as program:
            _, err = program.communicate()
        place.home.chmod(0o700)
    assert program.returncode == 0, err
    names = [
        file["path"] for file in json.loads(bundle.read_text(encoding="utf-8"))["files"]
    ]
    assert names == ["found"]
    assert not list((repository / ".git").glob("git.*"))


def test_own_output_is_no_change_and_a_failed_turn_leaves_the_file_empty(
    place: Workplace, repository: Path
) -> None:
    bundle = repository / "out.cxb"
    bundle.write_text("of an earlier run", encoding="utf-8")
    options = ("-o", str(repository / "last"))
    _, fields = made(place, bundle, *options, script=[command("echo >> text"), DONE])
    assert [file["path"] for file in fields["files"]] == ["text"]
    outcome, fields = made(place, bundle, "--max-turns", "1", script=[command("true")])
    assert (outcome.code, fields) == (53, {})
    assert apply(place, repository, bundle)[0] == 65


def test_a_bundle_that_cannot_be_written_costs_no_request(
    place: Workplace, repository: Path
) -> None:
    with ScriptedServer([]) as server:
        short = {KEY_VARIABLE: "short"}
        outcome = place.run(server, "--bundle", str(repository / "x"), "go", env=short)
        assert (outcome.code, f"{KEY_VARIABLE} is too short" in outcome.err) == (
            78,
            True,
        )
        outcome = place.run(server, "--bundle", str(repository / "missing" / "x"), "go")
        assert (outcome.code, "Failed to write the bundle to" in outcome.err) == (
            2,
            True,
        )
        subprocess.run(["rm", "-rf", repository / ".git"], check=True)
        outcome = place.run(server, "--bundle", str(repository / "x"), "go")
        assert (outcome.code, "is in no git repository" in outcome.err) == (2, True)
        assert server.requests == []
    code, _, stderr = apply(place, repository, repository / "text", "--force")
    assert code in {2, 65}, stderr
