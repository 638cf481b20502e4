"""Whatever kills a writer, and whenever: what it leaves behind can be resumed."""

import random
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from codex_py.rollout.reader import read_session
from codex_py.rollout.writer import RolloutWriter
from tests.rollout.builders import user
from tests.support.searches import sample

# Writes numbered items without end, and says so after each one.
_WRITER = """
import sys
from pathlib import Path
from codex_py.rollout.writer import RolloutWriter
from tests.rollout.builders import meta, user

writer = RolloutWriter.create(Path(sys.argv[1]), meta(), warn=print)
print(writer.path, flush=True)
for n in range(1_000_000):
    writer.response_item(user(f"{n} " + "x" * (n * 37 % 5000)))
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("seed", sample(range(10)))
def test_a_killed_writer_leaves_every_line_that_it_had_finished(
    tmp_path: Path, seed: int
) -> None:
    wanted = random.Random(seed).randrange(1, 400)
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        for _ in range(wanted):
            process.stdout.readline()
        process.kill()
        told = wanted + sum(1 for line in process.stdout if line.endswith("\n"))
    stored = read_session(path)
    # One more may have been written than was told of; one may be cut, and that is the last.
    count = len(stored.items)
    assert told <= count <= told + 1
    assert stored.items == [user(f"{n} " + "x" * (n * 37 % 5000)) for n in range(count)]
    assert stored.damaged_lines <= 1

    with closing(RolloutWriter.resume(path, warn=pytest.fail)) as writer:
        writer.response_item(user("and on"))
    assert read_session(path).items == [*stored.items, user("and on")]


def test_a_kill_leaves_no_part_of_a_copy_to_be_taken_for_the_whole(
    tmp_path: Path,
) -> None:
    """Else a resumed session of Codex would go on from there."""
    copier = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from codex_py.rollout.writer import RolloutWriter\n"
        "from tests.rollout.builders import meta, user\n"
        "def items():\n"
        "    yield user('first')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "RolloutWriter.create(Path(sys.argv[1]), meta(), items(), warn=print)\n"
    )
    killed = subprocess.run([sys.executable, "-c", copier, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.glob("sessions/**/*.jsonl")) == []
