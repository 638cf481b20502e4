import sysconfig
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.git import git
from tests.support.workflow_runner import Job

ROOT = Path(__file__).parent.parent.parent
BASKET = ROOT / "codex_py" / "frontends" / "demo" / "repository"
KEY = f"sk-{uuid.uuid4().hex}"
"""Of this run of the tests alone: another one on this machine may be at work, whose variables can be seen."""


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that the action's own first step makes, without a network: what we need is found beside it."""
    packages = sysconfig.get_paths()["purelib"]
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": packages}
    job = Job(
        tmp_path_factory.mktemp("install"), actions={"a/codex-py": ROOT}, variables=pip
    )
    result = job.run(
        "jobs: {a: {steps: [{uses: a/codex-py@v1, with: {codex-user: a}}]}}", "a"
    )
    assert [each.message for each in result.annotations] == [
        "there is no `unprivileged-user`: run the job as another user",
        "Process completed with exit code 2.",
    ], result.log
    venv = job.temp / "codex-py"
    (site,) = venv.glob("lib/python*/site-packages")
    assert (site / "codex_py" / "instructions" / "base.md").is_file()
    (site / "beside.pth").write_text(f"{packages}\n", encoding="utf-8")
    return venv


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository on GitHub, with two commits."""
    folder = tmp_path_factory.mktemp("origin")
    git(folder, "init", "-q", "-b", "main")
    for name in ("README.md", "basket.py", "test_basket.py"):
        (folder / name).write_bytes((BASKET / name).read_bytes())
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    git(folder, "add", ".")
    git(folder, *identity, "commit", "-qm", "First")
    (folder / ".gitignore").write_text("__pycache__/\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, *identity, "commit", "-qm", "Second")
    return folder


@pytest.fixture
def start(tmp_path: Path, installed: Path, origin: Path) -> Callable[..., Job]:
    def checkout(job: Job, inputs: Mapping[str, str]) -> Mapping[str, str]:
        """As `actions/checkout`: one commit, and in the configuration the token of the job, unless told otherwise."""
        depth = [] if inputs.get("fetch-depth") == "0" else ["--depth=1"]
        git(job.workspace, "init", "-q", "-b", "main")
        git(job.workspace, "remote", "add", "origin", origin.as_uri())
        git(job.workspace, "fetch", "-q", *depth, "origin")
        git(job.workspace, "checkout", "-q", "--detach", "origin/main")
        if inputs.get("persist-credentials") != "false":
            header = f"AUTHORIZATION: basic {job.token}"
            git(job.workspace, "config", "http.https://github.com/.extraheader", header)
        return {}

    def job(**options: Any) -> Job:
        actions = {"actions/checkout": checkout, "your-org/codex-py": ROOT}
        sha, secrets = git(origin, "rev-parse", "HEAD"), {"KEY": KEY}
        made = Job(
            tmp_path / "runner", actions=actions, secrets=secrets, sha=sha, **options
        )
        (made.temp / "codex-py").symlink_to(installed)
        return made

    return job
