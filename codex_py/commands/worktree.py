"""`codex-py worktree list` and `remove`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.app.best_of.snapshot import sweep
from codex_py.app.worktrees.kept import KeptWorktree, kept_worktrees, remove_worktree
from codex_py.command_line.subcommand import command_config, command_parser, print_table, required
from codex_py.config.paths import project_root
from codex_py.errors import CodexError
from codex_py.streams.standard import print_json, print_out
from codex_py.streams.terminal import on_one_line, some_of


def run_list(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the worktrees of sessions; the exit code."""
    options = command_parser("--json").parse_args(list(argv))
    config = command_config(options, environment, warns=False)
    home, root = config.home, project_root(config.cwd, (".git",))
    if root is not None:
        sweep(root, home, environment)
    found = kept_worktrees(home, environment)
    if options.json:
        return print_json([_data(each) for each in found], indent=2)
    if not found:
        return print_out("There are no worktrees. `--worktree` makes one for a session.\n")
    rows = [("NAME", "STATE", "COMMIT", "SESSION", "PATH")]
    for each in found:
        session = next(iter(each.sessions), "-")
        rows.append((each.name, each.state, each.commit[:9] or "-", session, str(each.path)))
    return print_table(rows)


def run_remove(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Remove a worktree; the exit code."""
    options = command_parser("worktree", "--force").parse_args(list(argv))
    wanted = required(options.worktree, "worktree: codex-py worktree remove PATH, NAME or SESSION")
    home = command_config(options, environment, warns=False).home
    path = Path(wanted).resolve()
    for each in kept_worktrees(home, environment):
        if wanted in {each.name, *each.sessions} or path == each.path:
            ignored = remove_worktree(home, each, force=options.force)
            more = f"With it, ignored files were removed: {on_one_line(some_of(ignored))}\n"
            removed = f"Removed the worktree {on_one_line(str(each.path))}.\n"
            return print_out(removed + more if ignored else removed)
    raise CodexError(f"there is no worktree {wanted!r}; see `codex-py worktree list`")


def _data(kept: KeptWorktree) -> dict[str, object]:
    return {
        "name": kept.name,
        "path": str(kept.path),
        "repository": None if kept.tree is None else str(kept.tree.root),
        "commit": kept.commit or None,
        "state": kept.state,
        "unsaved": kept.unsaved or None,
        "sessions": kept.sessions,
    }
