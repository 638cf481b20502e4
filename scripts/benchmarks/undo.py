"""What it costs a turn that its changes can be undone."""

import subprocess
from pathlib import Path
from statistics import median

from scripts.benchmarks.agent import PROMPT, Agent, fresh_place
from scripts.benchmarks.replies import one_call
from scripts.benchmarks.samples import Sample
from scripts.benchmarks.server import BenchmarkServer

_FILES = 10_000
_PAIRS = 5
_THOUGHT_S = 0.2
_COMMAND = "sh -c :"
"""Nobody can know that this changes nothing."""


def undo(server: BenchmarkServer, agent: Agent) -> Sample:
    """Turns of one call in a repository of many files, with copies and without."""
    with fresh_place("") as place:
        _fill(place.repository)

        def turn(*, with_copies: bool) -> float:
            config = server.play(one_call, _COMMAND, _THOUGHT_S)
            (place.home / "config.toml").write_text(config, encoding="utf-8")
            switch = f"features.undo={str(with_copies).lower()}"
            return place.exec(agent, "-c", switch, PROMPT).wait().wall_s * 1_000

        turn(with_copies=False)
        first = turn(with_copies=True) - turn(with_copies=False)
        pairs = [
            (turn(with_copies=True), turn(with_copies=False)) for _ in range(_PAIRS)
        ]
    return {"undo": median(more - less for more, less in pairs), "undo, first": first}


def _fill(repository: Path) -> None:
    for number in range(_FILES):
        folder = repository / f"folder{number // 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}.py").write_text(
            f"number = {number}\n" * 50, encoding="utf-8"
        )
    author = ("-c", "user.email=bench@example.com", "-c", "user.name=bench")
    for words in (("add", "-A"), (*author, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=repository, check=True)
