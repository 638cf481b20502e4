"""The figures, each with its unit and its budget, and the table of what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    what: str
    unit: str = ""
    of_peer: float | None = None
    """Not to be more than so much of what the peer takes."""
    at_most: float | None = None
    """Not to be more than this, in the unit; without either it is only shown."""

    @property
    def budget(self) -> str:
        if self.of_peer is not None:
            return f"{self.of_peer:g} x peer"
        return "" if self.at_most is None else f"{self.at_most:g} {self.unit}".strip()

    def verdict(self, ours: float, peer: float | None) -> str:
        """`ok` or `over`; empty where that cannot be said."""
        limit = (
            (None if peer is None else self.of_peer * peer)
            if self.of_peer is not None
            else self.at_most
        )
        if limit is None:
            return ""
        return "ok" if ours <= limit else "over"


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(name="startup", what="start to first request", unit="ms", of_peer=0.65),
        Figure(
            name="startup, new home",
            what="the same in an empty home",
            unit="ms",
            of_peer=0.55,
        ),
        Figure(
            name="distributions",
            what="the same among 100 packages",
            at_most=1.03,
        ),
        Figure(
            name="in a row",
            what="CPU of 100 `exec`, one by one",
            unit="s",
            of_peer=0.6,
        ),
        Figure(name="turn", what="one turn, start to exit", unit="ms", of_peer=0.85),
        Figure(name="memory, 1 turn", what="peak memory of it", unit="MB", of_peer=0.4),
        Figure(
            name="tools", what="200 calls of `true` in a row", unit="s", of_peer=0.2
        ),
        Figure(name="tools, last gap", what="last turns over first", at_most=1.3),
        Figure(
            name="memory, 200 turns", what="peak memory of them", unit="MB", of_peer=0.4
        ),
        Figure(
            name="profile", what="10 calls, a profile of 0.2 s", unit="s", of_peer=0.6
        ),
        Figure(
            name="first-call",
            what="a call after 0.5 s, to request 2",
            unit="ms",
            of_peer=0.85,
        ),
        Figure(name="undo", what="a turn in 10,000 files, more", unit="ms", at_most=30),
        Figure(name="undo, first", what="the first one there, more", unit="ms"),
        Figure(name="stream", what="CPU per streamed delta", unit="us", of_peer=0.2),
        Figure(
            name="stream, memory",
            what="peak memory of 200,000",
            unit="MB",
            of_peer=0.25,
        ),
        Figure(
            name="arguments",
            what="1 MB of them in 20,000 deltas",
            unit="s",
            of_peer=0.8,
        ),
        Figure(
            name="arguments, CPU", what="processor time of it", unit="s", of_peer=0.8
        ),
        Figure(
            name="parallel",
            what="8 calls of `sleep 0.5` at once",
            unit="s",
            at_most=0.57,
        ),
        Figure(
            name="output", what="a command that prints 200 MB", unit="s", of_peer=0.9
        ),
        Figure(name="output, CPU", what="processor time of it", unit="s", of_peer=0.7),
        Figure(name="output, memory", what="peak memory of it", unit="MB", of_peer=0.3),
        Figure(
            name="resume", what="20 MB session to first request", unit="ms", of_peer=0.6
        ),
        Figure(
            name="resume, 1 GB",
            what="5 MB of it sent, more time",
            unit="ms",
            at_most=500,
        ),
        Figure(
            name="resume, 1 GB, memory",
            what="more than a new session",
            unit="MB",
            at_most=15,
        ),
        *(
            Figure(name=f"sessions, {way}", what=what, unit="ms", at_most=20)
            for way, what in (
                ("new", "exec among 10,000, more time"),
                ("id", "resume of the oldest"),
                ("name", "the same by its name"),
                ("last", "resume --last"),
            )
        ),
        Figure(name="many", what="20 `exec` at once", unit="s", of_peer=0.85),
        Figure(name="many, CPU", what="processor time of them", unit="s", of_peer=0.85),
        Figure(
            name="many, memory",
            what="proportional memory of them",
            unit="MB",
            of_peer=1.0,
        ),
        Figure(
            name="agents", what="10 subagents that take 1 s each", unit="s", at_most=3.0
        ),
        Figure(
            name="agents, memory", what="of each, at its peak", unit="MB", at_most=10
        ),
        Figure(
            name="app-server", what="50 threads, 10 calls each", unit="s", of_peer=0.4
        ),
        Figure(
            name="app-server, wait",
            what="longest silence of a thread",
            unit="s",
            of_peer=0.8,
        ),
        Figure(
            name="app-server, memory",
            what="proportional memory of it",
            unit="MB",
            of_peer=0.5,
        ),
        Figure(name="batch", what="200 tasks, 4 at a time", unit="s"),
        Figure(name="batch, CPU", what="of as many `exec`", at_most=0.5),
        Figure(
            name="batch, memory",
            what="peak memory of the driver",
            unit="MB",
            at_most=60,
        ),
        Figure(
            name="terminal", what="CPU, 100 kB in a terminal", unit="s", of_peer=0.15
        ),
        Figure(
            name="terminal start", what="start to first frame", unit="ms", at_most=150
        ),
        Figure(
            name="keys", what="a key shown, 500 deltas a second", unit="ms", at_most=8
        ),
        Figure(name="keys, p99", what="99 of 100 of them", unit="ms", at_most=16),
        Figure(name="idle", what="wakeups in 10 s", at_most=0),
        Figure(
            name="waiting", what="10 s for the model, written", unit="kB", at_most=3
        ),
        Figure(
            name="waiting, CPU", what="processor time of it", unit="s", at_most=0.03
        ),
        Figure(name="turns", what="last of 300 turns over first", at_most=1.3),
        Figure(name="turns, each", what="Enter to the answer, last turns", unit="ms"),
        Figure(
            name="turns, memory",
            what="more than after 30 of them",
            unit="MB",
            at_most=20,
        ),
        Figure(name="version", what="--version", unit="ms", at_most=40),
        Figure(name="help", what="exec --help", unit="ms", at_most=35),
        *(
            figure
            for path, what, functions, modules in (
                ("exec", "start to first byte", 350, 75),
                ("call", "a command to the next request", 220, 50),
                ("patch", "a patch to the next request", 290, 62),
                ("key", "a key to its row", 45, 14),
            )
            for figure in (
                Figure(name=f"hops, {path}", what=what, at_most=functions),
                Figure(name=f"modules, {path}", what="modules of it", at_most=modules),
            )
        ),
        *(
            Figure(
                name=f"sandbox, {backend}",
                what="`true`, more than without",
                unit="ms",
                at_most=15,
            )
            for backend in (
                "namespaces",
                "bwrap",
                "views",
                "supervised",
                "landlock",
                "seatbelt",
            )
        ),
        *(
            Figure(
                name=f"denials, {backend}",
                what="20 denials, more than none",
                unit="ms",
                at_most=3,
            )
            for backend in ("namespaces", "bwrap", "views")
        ),
        *(
            Figure(
                name=f"proxy, {backend}",
                what="a request, more than without",
                unit="ms",
                at_most=1,
            )
            for backend in ("namespaces", "bwrap", "views")
        ),
        *(
            figure
            for wire in ("responses", "chat", "anthropic", "text")
            for figure in (
                Figure(
                    name=f"wires, {wire}",
                    what="CPU of turn 200 over turn 1",
                    at_most=1.5,
                ),
                Figure(
                    name=f"wires, {wire}, CPU", what="of a turn, on average", unit="ms"
                ),
            )
        ),
        # Of these, git is the peer.
        Figure(
            name="patch, diff", what="880 files, 3,600 hunks", unit="ms", of_peer=1.5
        ),
        Figure(name="patch, diff, CPU", what="processor time of it", unit="ms"),
        Figure(
            name="patch, envelope",
            what="the same, as an envelope",
            unit="ms",
            of_peer=1.5,
        ),
        Figure(name="patch, envelope, CPU", what="processor time of it", unit="ms"),
        Figure(
            name="patch, library",
            what="the diff in a loaded process",
            unit="ms",
            of_peer=1.5,
        ),
        Figure(
            name="releases, diff",
            what="changes of releases, each alone",
            unit="ms",
            of_peer=2,
        ),
        Figure(
            name="releases, envelope",
            what="the same, as envelopes",
            unit="ms",
            of_peer=2,
        ),
        Figure(
            name="patch, worst",
            what="2,000 lines that fit nearly",
            unit="ms",
            at_most=300,
        ),
    )
}

_ROW = "{:<20} {:<31} {:>9} {:>9} {:>6}  {:<11} {}"
HEADING = _ROW.format("figure", "", "ours", "peer", "ratio", "budget", "").rstrip()


def rows(samples: Sequence[Sequence[dict[str, float]]]) -> str:
    """The medians of the runs of the first agent, beside those of the second where there is one."""
    lines: list[str] = []
    for name in samples[0][0]:
        figure = FIGURES[name]
        ours, *rest = (median(run[name] for run in runs) for runs in samples)
        peer = rest[0] if rest else None
        line = _ROW.format(
            name,
            figure.what,
            _shown(ours, figure.unit),
            "" if peer is None else _shown(peer, figure.unit),
            "" if peer is None else f"{ours / peer:.2f}",
            figure.budget,
            figure.verdict(ours, peer),
        )
        lines.append(line.rstrip())
    return "\n".join(lines)


def _shown(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}".rstrip()
