"""`codex-py completion SHELL`: a script that asks this program for the words that fit.

They come from the table of commands and from the parsers that the commands themselves use.
"""

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.app.loading import load
from codex_py.cli.commands import NAMES, Command, find_command, help_text
from codex_py.command_line.arguments import Arguments
from codex_py.command_line.parser import CommandParser, HelpRequested, OneOf
from codex_py.config.paths import codex_home
from codex_py.rollout.index import recent_sessions, thread_names
from codex_py.rollout.records import ARCHIVED_SESSIONS, SESSIONS
from codex_py.streams.standard import print_out

_ASK: Final = "--candidates"
"""`codex-py completion --candidates -- WORD…` prints the completions of the last word, one per line; none for a
file."""
_MOST_SESSIONS: Final = 100
_OF_SESSIONS: Final = {"exec resume", "exec fork", "resume", "fork"}

# They start the word on the line if it is absolute, else the program in an absolute folder of PATH: before Enter,
# nothing of the working directory may run.
_BASH: Final = """\
_codex_py() {
    local program=$1 word
    [[ $program == /* ]] ||
        while read -r program && [[ $program != /* ]]; do :; done < <(type -aP codex-py)
    COMPREPLY=()
    [[ $program ]] || return
    while IFS= read -r word; do
        printf -v word %q "$word"
        COMPREPLY+=("$word")
    done < <("$program" completion --candidates -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _codex_py codex-py
"""
_ZSH: Final = """\
#compdef codex-py
_codex_py() {
    local -a found programs
    programs=(${words[1]:#[^/]*} ${^${(M)path:#/*}}/codex-py(N-*))
    (( $#programs )) && found=(${(f)"$($programs[1] completion --candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -V codex-py -- $found; else _files; fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _codex_py "$@"; else compdef _codex_py codex-py; fi
"""
_FISH: Final = """\
function __codex_py
    set -l words (commandline -opc) (commandline -ct)
    set -l found
    for program in (string match -- '/*' $words[1]) (string match -- '/*' $PATH)/codex-py
        if test -f $program -a -x $program
            set found ($program completion --candidates -- $words[2..-1] 2>/dev/null)
            break
        end
    end
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c codex-py -f -a '(__codex_py)'
"""
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def run_completion(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the script, or the words that it asks for; the exit code."""
    if argv[:1] == [_ASK]:
        return print_out("".join(f"{word}\n" for word in _candidates(argv[2:], environment)))
    parser = CommandParser(Arguments, only={"overrides"})
    parser.add_argument("shell", nargs="?", default="bash", type=OneOf(*_SCRIPTS))
    return print_out(_SCRIPTS[parser.parse_args(list(argv)).shell])


def _candidates(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    # bash divides `--color=always` into three words, and the last one may be the sign.
    *before, current = [word.removeprefix("=") for word in words] or [""]
    before = [word for word in before if word]
    row, member = _command(before)
    command = row.names[0] if row else ""
    if row is not None and row.members and not member:
        found: Sequence[str] = list(row.members)
    elif command == "help":
        found = NAMES
    else:
        parser = _parser(row, member)
        option = parser.option_named(before[-1]) if before else None
        if option is not None and option.nargs != 0:
            found = _values(option)
        elif current.startswith("-"):
            text = help_text(command if row and row.own_options else "exec")
            # Options that the help leaves out are not worth suggesting.
            found = [o for o in re.findall(r"--[\w-]+", text) if parser.option_named(o)]
        elif row is None:
            found = NAMES
        else:
            place = f"{command} {member}".strip()
            found = [] if member else _words(row)
            found += _arguments(parser, place, environment)
    return [word for word in dict.fromkeys(found) if word.startswith(current)]


def _command(words: Sequence[str]) -> tuple[Command | None, str]:
    """The command that the words name, and the word below it."""
    row = next(filter(None, map(find_command, words)), None)
    if row is None:
        return None, ""
    members = row.members or _words(row)
    return row, next((word for word in words if word in members), "")


def _words(row: Command) -> list[str]:
    """The lower-case words behind the name in the usage of a command."""
    return re.findall(r"[a-z]+", row.usage.rpartition(", ")[2].partition(" ")[2])


def _parser(row: Command | None, member: str) -> CommandParser:
    if row is not None and row.own_options:
        try:
            load(row.target(member))(["--help"], {})
        except HelpRequested as request:
            if isinstance(request.parser, CommandParser):
                return request.parser
    return CommandParser(Arguments)


def _values(action: argparse.Action) -> Sequence[str]:
    return action.type.allowed if isinstance(action.type, OneOf) else ()


def _arguments(parser: CommandParser, place: str, environment: Mapping[str, str]) -> Iterator[str]:
    words = parser.positionals()
    if place in _OF_SESSIONS or any(each.dest == "session" for each in words):
        folder = ARCHIVED_SESSIONS if place == "unarchive" else SESSIONS
        yield from _sessions(codex_home(environment), folder)
    for each in words:
        yield from _values(each)


def _sessions(home: Path, folder: str) -> Iterator[str]:
    """Ids of the sessions, the latest first, each behind its name if that is one word."""
    names = thread_names(home)
    recent = recent_sessions(home, cwd=None, folder=folder)
    for _, meta, _ in islice(recent, _MOST_SESSIONS):
        name = names.get(meta.id, "")
        # A name from a foreign session must be neither an option nor code for the shell.
        if re.fullmatch(r"\w[\w.-]*", name):
            yield name
        yield meta.id
