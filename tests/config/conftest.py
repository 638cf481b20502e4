from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.config import Config, load_config
from codex_py.config.explain import explain
from codex_py.config.layers import read_layers
from codex_py.config.paths import folders_between
from codex_py.config.project_trust import trust_project
from codex_py.config.requirements import required


@dataclass
class Place:
    """A home, a project that is a git repository, and a folder in it to work in."""

    home: Path
    root: Path
    cwd: Path
    system: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home.parent), "CODEX_HOME": str(self.home)}

    def user(self, text: str, name: str = "config.toml") -> Path:
        path = self.home / name
        path.write_text(text, encoding="utf-8")
        return path

    def project(self, text: str, folder: Path | None = None) -> Path:
        path = (folder or self.root) / ".codex" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def trusted(self, text: str = "") -> Path:
        return self.user(f'{text}\n[projects."{self.root}"]\ntrust_level = "trusted"\n')

    def trust(self) -> None:
        """As `exec --trust` does."""
        trust_project(self.home, folders_between(self.root, self.cwd))

    def load(
        self,
        *,
        overrides: Sequence[str] = (),
        flags: Mapping[str, Any] | None = None,
        profile: str | None = None,
        ignore_user_config: bool = False,
        strict: bool = False,
    ) -> Config:
        return load_config(
            cwd=self.cwd,
            environment=self.environment,
            overrides=overrides,
            flags=flags,
            profile=profile,
            ignore_user_config=ignore_user_config,
            strict=strict,
            system=self.system,
        )

    def explain(self, key: str, *, overrides: Sequence[str] = ()) -> str:
        read = read_layers(
            cwd=self.cwd,
            environment=self.environment,
            overrides=overrides,
            system=self.system,
        )
        layers, requirements = required(read)
        return explain(key, layers, requirements.file)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home = tmp_path / "home" / ".codex"
    cwd = tmp_path / "repo" / "sub"
    for folder in (home, cwd, tmp_path / "etc", tmp_path / "repo" / ".git"):
        folder.mkdir(parents=True)
    (tmp_path / "repo" / ".git" / "HEAD").touch()
    return Place(home, tmp_path / "repo", cwd, tmp_path / "etc")
