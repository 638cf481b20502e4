"""What we do in a repository ourselves starts nothing that the repository names."""

from pathlib import Path

import pytest

from codex_py.testing import ev_completed, ev_function_call, ev_message
from tests.patch.test_git import MISSING
from tests.support.hostile_repository import HostileRepository, make_hostile_repository
from tests.support.program import Workplace, run_codex_py
from tests.support.server import ScriptedServer

DIFF = f"""\
diff --git a/f b/f
index {MISSING}..89abcde 100644
--- a/f
+++ b/f
@@ -1,3 +1,3 @@
 a
-q
+B
 c
"""
PATCH = "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End Patch\n"


@pytest.fixture
def hostile(place: Workplace, tmp_path: Path) -> HostileRepository:
    return make_hostile_repository(tmp_path / "hostile", tmp_path / "marker")


def test_a_session_and_its_undo(place: Workplace, hostile: HostileRepository) -> None:
    script = [
        [*ev_function_call("c1", "apply_patch", {"input": PATCH}), ev_completed()],
        [*ev_message("done"), ev_completed()],
    ]
    with ScriptedServer(script) as server:
        outcome = place.run(
            server, "-C", str(hostile.root), "go", env=hostile.environment
        )
    assert (outcome.code, outcome.messages) == (0, ["done"])
    assert (hostile.root / "f").read_text(encoding="utf-8").startswith("a\nB\n")
    done = run_codex_py(["undo"], place.home, hostile.root, hostile.environment)
    assert done.returncode == 0, done.stderr
    assert (hostile.root / "f").read_text(encoding="utf-8").startswith("a\nb\n")
    assert not hostile.marker.exists()


def test_a_three_way_apply_starts_nothing_that_the_repository_names(
    place: Workplace, hostile: HostileRepository
) -> None:
    done = run_codex_py(
        ["apply", "--3way"],
        place.home,
        hostile.root,
        hostile.environment,
        DIFF.encode(),
    )
    assert done.returncode == 7, done.stderr
    assert not hostile.marker.exists()
