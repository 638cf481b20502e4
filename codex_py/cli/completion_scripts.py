"""The completion scripts for bash, zsh and fish. bash and zsh share the code that finds the words."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from codex_py.protocol.frozen import frozen


@frozen
class Option:
    names: tuple[str, ...]
    values: tuple[str, ...] | None
    """The possible values; empty: any, for which files are offered. None: it takes none."""


@frozen
class Place:
    """A command, by the words that lead to it."""

    names: Sequence[str]
    """`exec` and `e`, or `mcp add`; empty for the place before any command."""
    words_are: Literal["session", "file", ""]
    """What may stand there besides the words."""
    options: Sequence[Option]
    words: Sequence[tuple[str, str]]
    """With a description each, which may be empty."""

    @property
    def name(self) -> str:
        return self.names[0] if self.names else ""


_FIND: Final = """\
# Sets `found` to the words that fit, or to `@files`. Arguments: the word to complete, and those before it.
_codex_py_find() {{
    local word place= previous= current=$1
    shift
    for word in "$@"; do
        [ "$word" = "=" ] || previous=$word
        case "$place $word" in
{moves}
        esac
    done
    case "$place $previous" in
{values}
    esac
    case "$place@$current" in
{options}
    esac
    case "$place" in
{words}
        *) found=@files ;;
    esac
}}

_codex_py_sessions() {{
    {sessions}
}}
"""
_SESSIONS: Final = (
    'find "{home}/sessions" "{home}/archived_sessions" -name "rollout-*.jsonl" 2>/dev/null'
    " | sed 's/.*\\(.\\{{36\\}}\\)\\.jsonl$/\\1/' | sort -r | head -n 200"
)
"""The ids, newest first: they begin with the time."""
_BASH: Final = """
_codex_py() {
    local found= current=${COMP_WORDS[COMP_CWORD]}
    [ "$current" = "=" ] && current=
    _codex_py_find "$current" "${COMP_WORDS[@]:1:COMP_CWORD-1}"
    COMPREPLY=()
    # Without an answer, files are offered.
    [ "$found" = @files ] || COMPREPLY=($(compgen -W "$found" -- "$current"))
}

complete -o bashdefault -o default -F _codex_py codex-py
"""
_ZSH: Final = """
_codex_py() {
    local found=
    _codex_py_find "${words[CURRENT]}" "${(@)words[2,CURRENT-1]}"
    if [[ $found == @files ]]; then _files; else compadd -V codex-py -- ${=found}; fi
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _codex_py "$@"; else compdef _codex_py codex-py; fi
"""
_FISH: Final = """\
function __codex_py_at
    set -l place ''
    for word in (commandline -opc)[2..-1]
        switch "$place $word"
{moves}
        end
    end
    contains -- "$place" $argv
end

function __codex_py_sessions
    set -q CODEX_HOME; or set -l CODEX_HOME $HOME/.codex
    {sessions}
end

"""


def _common(places: Sequence[Place]) -> str:
    values = [
        (f"{place.name} {name}", " ".join(option.values) or "@files")
        for place in places
        for option in place.options
        if option.values is not None
        for name in option.names
    ]
    options = [(place.name, " ".join(_long_names(place))) for place in places if place.options]
    words = [(place.name, _words(place)) for place in places if place.words or place.words_are]
    return _FIND.format(
        moves=_cases(_moves(places), lambda to: f"place='{to}'", indent=12),
        values=_cases(values, lambda found: f"found='{found}'; return"),
        options=_cases(options, lambda found: f"found='{found}'; return", suffix="@-"),
        words=_cases(words, lambda found: f"found={found}"),
        sessions=_SESSIONS.format(home="${CODEX_HOME:-$HOME/.codex}"),
    )


def _moves(places: Iterable[Place]) -> Iterator[tuple[str, str]]:
    """A place and the next word, and the place that it leads to."""
    for place in places:
        for name in place.names:
            before, _, word = name.rpartition(" ")
            yield f"{before} {word}", place.name


def _cases(
    rows: Iterable[tuple[str, str]],
    command: Callable[[str], str],
    *,
    suffix: str = "",
    indent: int = 8,
) -> str:
    """The branches of a `case`, one for all patterns with the same result."""
    patterns: dict[str, list[str]] = {}
    for pattern, result in rows:
        star = "*" if suffix else ""
        patterns.setdefault(result, []).append(f"'{pattern}{suffix}'{star}")
    return "\n".join(
        f"{' ' * indent}{' | '.join(each)}) {command(result)} ;;"
        for result, each in patterns.items()
    )


def _long_names(place: Place) -> list[str]:
    return [next((n for n in o.names if n.startswith("--")), o.names[0]) for o in place.options]


def _words(place: Place) -> str:
    words = " ".join(word for word, _ in place.words)
    if place.words_are == "session":
        return f'"{words} $(_codex_py_sessions)"'
    return f"'{words}'" if words else "@files"


def _fish(places: Sequence[Place]) -> str:
    moves = "\n".join(
        f"            case '{pattern}'\n                set place '{to}'"
        for pattern, to in _moves(places)
    )
    lines = [_FISH.format(moves=moves, sessions=_SESSIONS.format(home="$CODEX_HOME"))]
    options: Mapping[Option, list[str]] = {}
    for place in places:
        for option in place.options:
            options.setdefault(option, []).append(f"'{place.name}'")
        files = "" if place.words_are == "file" else " -f"
        for word, description in place.words:
            about = (
                f" -d '{description.replace(chr(39), chr(92) + chr(39))}'" if description else ""
            )
            lines.append(_complete([f"'{place.name}'"], f"{files} -a '{word}'{about}"))
        if place.words_are == "session":
            lines.append(_complete([f"'{place.name}'"], " -f -a '(__codex_py_sessions)'"))
    for option, names in options.items():
        flags = "".join(
            f" -l {n[2:]}" if n.startswith("--") else f" -s {n[1:]}" for n in option.names
        )
        if option.values is not None:
            flags += f" -x -a '{' '.join(option.values)}'" if option.values else " -r"
        lines.append(_complete(names, flags))
    return "".join(lines)


def _complete(names: Iterable[str], settings: str) -> str:
    return f'complete -c codex-py -n "__codex_py_at {" ".join(names)}"{settings}\n'


SCRIPTS: Final[Mapping[str, Callable[[Sequence[Place]], str]]] = {
    "bash": lambda places: _common(places) + _BASH,
    "zsh": lambda places: "#compdef codex-py\n" + _common(places) + _ZSH,
    "fish": _fish,
}
"""What makes the script, by the name of the shell."""
