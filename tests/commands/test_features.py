import subprocess
from pathlib import Path

import pytest

from codex_py.commands.features import run_disable, run_enable, run_list
from codex_py.errors import CodexError
from tests.support.codex import CODEX, needs_codex
from tests.support.program import environment


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def states(home: Path, capfd: pytest.CaptureFixture[str], *argv: str) -> dict[str, str]:
    assert run_list(argv, environment(home)) == 0
    lines = capfd.readouterr().out.splitlines()
    return {line.split()[0]: line.split()[-1] for line in lines}


def test_a_feature_is_switched_in_the_file(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = home / "config.toml"
    config.write_text('# mine\nmodel = "x"\n', encoding="utf-8")
    assert run_disable(["goals"], environment(home)) == 0
    assert capfd.readouterr().out == "Disabled feature `goals` in config.toml.\n"
    assert states(home, capfd)["goals"] == "false"
    assert states(home, capfd, "--enable", "goals")["goals"] == "true"
    assert run_enable(["goals"], environment(home)) == 0
    assert (
        config.read_text("utf-8") == '# mine\nmodel = "x"\n\n[features]\ngoals = true\n'
    )


def test_the_settings_of_a_feature_stay(home: Path) -> None:
    config = home / "config.toml"
    config.write_text(
        "[features.multi_agent_v2]\nenabled = false\nx = 1\n", encoding="utf-8"
    )
    run_enable(["multi_agent_v2"], environment(home))
    assert (
        config.read_text("utf-8")
        == "[features.multi_agent_v2]\nenabled = true\nx = 1\n"
    )


def test_an_unknown_feature_is_told_with_the_one_that_was_meant(home: Path) -> None:
    with pytest.raises(
        CodexError, match=r"Unknown feature flag: gols\. Did you mean goals\?"
    ) as caught:
        run_enable(["gols"], environment(home))
    assert caught.value.exit_code == 1
    assert list(home.iterdir()) == []


def test_a_feature_that_codex_removed_and_this_program_has_is_listed_as_it_is(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert states(home, capfd)["undo"] == "true"
    assert states(home, capfd, "--disable", "undo")["undo"] == "false"
    run_list([], environment(home))
    assert "undo stable true" in " ".join(capfd.readouterr().out.split())


@needs_codex
def test_the_table_is_that_of_codex(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run(
        [str(CODEX), "features", "list"],
        env=environment(home),
        capture_output=True,
        timeout=120,
        check=True,
    )
    run_list([], environment(home))
    ours, theirs = (
        capfd.readouterr().out.splitlines(),
        done.stdout.decode().splitlines(),
    )
    different = [
        line.split()[0]
        for line, other in zip(ours, theirs, strict=True)
        if line != other
    ]
    assert different == ["undo"]
