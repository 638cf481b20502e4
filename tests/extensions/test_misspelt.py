"""A misspelt name of an extension is told with the right one, and no package is imported for it.

Also tests `cli/package_commands.py` and `command_line/extension_options.py`.
"""

import sys
from collections.abc import Callable
from typing import TypeAlias

import pytest

from codex_py.cli.main import main
from codex_py.registry import COMMANDS, EXTENSIONS, OPTIONS, TABLES
from tests.support.packages import install_package
from tests.support.program import Workplace

Run: TypeAlias = Callable[..., str]

OF_PACKAGE = {
    COMMANDS: ["measure", "sessions.encrypt"],
    OPTIONS: ["most-words"],
    TABLES: ["quiet-hours"],
    EXTENSIONS: ["shout"],
}


@pytest.fixture
def run(
    place: Workplace,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Run a command line beside a package that cannot be imported. Returns its one sentence."""
    packages = place.home / "packages"
    groups = {
        group: dict.fromkeys(names, "codex_py_misspelt:thing")
        for group, names in OF_PACKAGE.items()
    }
    install_package(
        packages, "codex_py_misspelt", "raise SystemError('it was imported')\n", groups
    )
    monkeypatch.setattr(sys, "path", [str(packages), *sys.path])
    monkeypatch.setenv("CODEX_HOME", str(place.home))
    monkeypatch.chdir(place.cwd)

    def run(*argv: str, config: str = "") -> str:
        (place.home / "config.toml").write_text(config, encoding="utf-8")
        code = main(argv)
        out, err = capfd.readouterr()
        assert (code, out) == (78 if config else 2, "")
        assert "Traceback" not in err
        assert "it was imported" not in err
        assert "codex_py_misspelt" not in sys.modules
        return err

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        # Of this program and of its folders.
        ("btach", "unknown command 'btach'. Did you mean batch?"),
        ("btach x", "unknown command 'btach'. Did you mean batch?"),
        ("prov", "stdin is not a terminal"),
        ("prov x", "unknown command 'prov'. Did you mean provenance or providers?"),
        ("provenence", "unknown command 'provenence'. Did you mean provenance?"),
        ("blame-agnet x", "unknown command 'blame-agnet'. Did you mean blame-agent?"),
        ("sessions exprot", "unknown command `sessions exprot`. Did you mean export?"),
        ("exec --verfy x", "unknown option --verfy. Did you mean --verify?"),
        (
            "exec --aprove-for-me x",
            "unknown option --aprove-for-me. Did you mean --approve-for-me?",
        ),
        # Of an installed package.
        ("mesure", "unknown command 'mesure'. Did you mean measure?"),
        ("meas x", "unknown command 'meas'. Did you mean measure?"),
        (
            "sessions encrpyt",
            "unknown command `sessions encrpyt`. Did you mean encrypt?",
        ),
        (
            "exec --most-wrods=3 x",
            "unknown option --most-wrods. Did you mean --most-words?",
        ),
    ],
)
def test_the_right_command_or_option_is_named(
    run: Run, words: str, message: str
) -> None:
    assert message in run(*words.split())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[otle]\nenvironment = 'ci'", "did you mean `otel`?"),
        ("[auto_reveiw]\npolicy = 'x'", "did you mean `auto_review`?"),
        ("[quite-hours]\nbegin = 1", "did you mean `quiet-hours`?"),
        ("[extensions.shuot]", "has an extension 'shuot'; did you mean 'shout'?"),
    ],
)
def test_the_right_key_or_value_is_named(run: Run, config: str, message: str) -> None:
    words = ("exec", "--strict-config", "--skip-git-repo-check", "x")
    assert message in run(*words, config=config)
