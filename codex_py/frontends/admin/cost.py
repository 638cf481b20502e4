"""`codex-py cost`: where the tokens of a session went."""

from collections.abc import Mapping, Sequence

from codex_py.frontends.admin.command import command_config, command_parser
from codex_py.frontends.admin.sessions import named_session
from codex_py.frontends.cost import CostReport
from codex_py.frontends.streams import print_json, print_out
from codex_py.rollout.records import read_meta
from codex_py.rollout.usage import read_session_usage


def run_cost(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the tokens of each turn, what they cost, and the largest outputs; the exit code."""
    options = command_parser("session", "--last", "--json").parse_args(list(argv))
    config = command_config(options, environment, warns=not options.json)
    last = options.last or options.session is None
    path = named_session(config.home, options.session, last=last)
    meta = read_meta(path)
    report = CostReport(
        read_session_usage(path), config, meta.model_provider or config.model_provider
    )
    if options.json:
        return print_json({"thread_id": meta.id, **report.data()}, indent=2)
    return print_out("".join(f"{line}\n" for line in report.lines()))
