"""Count how dense the code of the product is, and find what nobody reads at once.

Some figures have a limit, and some kinds of expressions must not be there at all. Prints the figures and the worst
places; fails if a limit is broken. The tokens of a line of code are those that are neither in a comment nor in a
docstring, and count no line ends; an f-string is one token in every version of Python.
"""

import ast
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

_ROOT: Final = Path(__file__).parent.parent
_PRODUCT: Final = _ROOT / "codex_py"
_NOT_OURS: Final = "frontends/demo/repository"
"""What the demo patches is data."""
_MAX_COLUMNS: Final = 100
_SHOWN: Final = 10
_NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_Spot: TypeAlias = tuple[int, int]
"""A line, from 1, and a column, from 0."""
_FSTRING_START: Final[object] = getattr(tokenize, "FSTRING_START", None)
_FSTRING_END: Final[object] = getattr(tokenize, "FSTRING_END", None)
"""Before Python 3.12, an f-string is one token."""


class Place(NamedTuple):
    """Something that a reader stops at."""

    path: Path
    line: int
    why: str


@dataclass(slots=True)
class Counts:
    lines: int = 0
    """Lines of code: neither blank, nor a comment, nor of a docstring."""
    tokens: int = 0
    conditionals: int = 0
    walruses: int = 0
    packed: int = 0
    """Assignments of several values that are no swap."""
    forbidden: list[Place] = field(default_factory=list[Place])
    dense: list[tuple[int, Place]] = field(default_factory=list[tuple[int, Place]])
    """The number of tokens in each line, and the line."""


class Figure(NamedTuple):
    name: str
    value: float
    limit: float


def count(paths: Iterable[Path]) -> Counts:
    """Read modules, and count in all of them together."""
    counts = Counts()
    for path in paths:
        source = path.read_text(encoding="utf-8")
        docstrings: set[int] = set()
        _count_nodes(counts, path, ast.parse(source), docstrings)
        _count_tokens(counts, path, source, docstrings)
    return counts


def figures(counts: Counts) -> list[Figure]:
    """What has a limit."""
    lines = max(1, counts.lines)
    thousands = lines / 1000
    return [
        Figure("tokens in a line of code", counts.tokens / lines, 7.5),
        Figure(
            "conditional expressions in 1,000 lines",
            counts.conditionals / thousands,
            14,
        ),
        Figure("walruses in 1,000 lines", counts.walruses / thousands, 4),
        Figure(
            "assignments of unrelated values in 1,000 lines",
            counts.packed / thousands,
            1,
        ),
    ]


def _count_tokens(
    counts: Counts, path: Path, source: str, docstrings: set[int]
) -> None:
    in_line: dict[int, int] = {}
    excused = set(docstrings)
    """Lines that may be long, for what stands at the last column that is allowed."""
    for kind, start, end in _tokens(source):
        first = start[0]
        if kind == tokenize.STRING or kind == tokenize.COMMENT:
            excused.update(_lines_with_text_at_the_margin(start, end))
        if kind in _NO_CODE or first in docstrings:
            continue
        counts.tokens += 1
        in_line[first] = in_line.get(first, 0) + 1
        for line in range(first + 1, end[0] + 1):
            in_line.setdefault(line, 0)
    counts.lines += len(in_line)
    for line, number in in_line.items():
        place = Place(path, line, f"{number} tokens in one line")
        counts.dense.append((number, place))
    for line, text in enumerate(source.splitlines(), 1):
        if len(text) > _MAX_COLUMNS and line in in_line and line not in excused:
            why = f"code beyond column {_MAX_COLUMNS}"
            counts.forbidden.append(Place(path, line, why))


def _tokens(source: str) -> Iterator[tuple[int, _Spot, _Spot]]:
    """The kind, the start and the end of each token; an f-string is one of the kind `STRING`."""
    opened: list[_Spot] = []
    for kind, _, start, end, _ in tokenize.generate_tokens(StringIO(source).readline):
        if kind == _FSTRING_START:
            opened.append(start)
        elif kind == _FSTRING_END:
            outer = opened.pop()
            if not opened:
                yield tokenize.STRING, outer, end
        elif not opened:
            yield kind, start, end


def _lines_with_text_at_the_margin(start: _Spot, end: _Spot) -> Iterator[int]:
    """The lines in which a string or comment stands at the last column that is allowed."""
    for line in range(start[0], end[0] + 1):
        begins_before = line > start[0] or start[1] < _MAX_COLUMNS
        ends_behind = line < end[0] or end[1] >= _MAX_COLUMNS
        if begins_before and ends_behind:
            yield line


class _Inside(NamedTuple):
    """What an expression stands in, in the same statement and outside of lambdas."""

    conditional: bool = False
    comprehension: bool = False


_OUTSIDE: Final = _Inside()


def _count_nodes(
    counts: Counts,
    path: Path,
    node: ast.AST,
    docstrings: set[int],
    inside: _Inside = _OUTSIDE,
) -> None:
    """Count what stands in a node, and gather the lines of docstrings."""
    why = _objection(node)
    match node:
        case ast.IfExp():
            counts.conditionals += 1
            if inside.conditional:
                why = "a conditional expression inside another one"
            elif inside.comprehension:
                why = "a conditional expression inside a comprehension"
            inside = inside._replace(conditional=True)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            inside = inside._replace(comprehension=True)
        case ast.NamedExpr():
            counts.walruses += 1
        case ast.Assign() if _is_packed(node):
            counts.packed += 1
        case ast.Expr(ast.Constant(str())):
            docstrings.update(range(node.lineno, (node.end_lineno or 0) + 1))
        case ast.stmt() | ast.Lambda():
            inside = _OUTSIDE
        case _:
            pass
    if why and isinstance(node, ast.expr | ast.stmt):
        counts.forbidden.append(Place(path, node.lineno, why))
    for child in ast.iter_child_nodes(node):
        # Operators and the like have nothing in them.
        if child._fields:
            _count_nodes(counts, path, child, docstrings, inside)


def _is_packed(node: ast.Assign) -> bool:
    """True for `a, b = x, y`, unless it changes the places of the same things, as a swap does."""
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    targets = {ast.unparse(each) for each in target.elts}
    values = {ast.unparse(each) for each in node.value.elts}
    return targets != values


def _objection(node: ast.AST) -> str:
    """Why an expression must not be there; empty if it may be."""
    match node:
        case ast.Starred(value=ast.Tuple() | ast.List()):
            return "values splatted to keep them on one line"
        case ast.BinOp(left, ast.Mult(), right):
            if _is_text(left) and _is_truth(right):
                return "a text or list multiplied by a truth value"
            if _is_truth(left) and _is_text(right):
                return "a text or list multiplied by a truth value"
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            if _is_truth(left) or _is_truth(right):
                return "a truth value used as a number"
        case ast.AugAssign(op=ast.Add() | ast.Sub() | ast.Mult(), value=value):
            if _is_truth(value):
                return "a truth value used as a number"
        case ast.Subscript(slice=index) if _is_truth(index):
            return "a truth value used as an index"
        case _:
            pass
    return ""


def _is_text(node: ast.AST) -> bool:
    match node:
        case ast.Constant(str() | bytes()):
            return True
        case ast.JoinedStr() | ast.List() | ast.Tuple():
            return True
        case _:
            return False


def _is_truth(node: ast.AST) -> bool:
    """True for an expression that can only be a truth value."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Call(ast.Name("bool") | ast.Attribute(attr="startswith" | "endswith")):
            return True
        case ast.BoolOp(values=values):
            return all(map(_is_truth, values))
        case ast.Name(name) | ast.Attribute(attr=name):
            return name.lstrip("_").startswith(("is_", "has_"))
        case _:
            return False


def report(counts: Counts, root: Path) -> str:
    """The figures, and the worst places: what is forbidden, then the lines with the most tokens."""
    lines: list[str] = []
    for figure in figures(counts):
        verdict = "too many" if figure.value > figure.limit else "good"
        line = f"{figure.value:6.2f} {figure.name} (limit {figure.limit:g}): {verdict}"
        lines.append(line)
    lines.append(f"{len(counts.forbidden):6} places that must not be (limit 0)")
    dense = sorted(counts.dense, key=lambda each: each[0], reverse=True)
    places = counts.forbidden[:_SHOWN]
    places += [place for _, place in dense[: _SHOWN - len(places)]]
    lines.append("The worst places:")
    for path, number, why in places:
        lines.append(f"  {path.relative_to(root)}:{number}: {why}")
    hidden = len(counts.forbidden) - _SHOWN
    if hidden > 0:
        lines.append(f"  and {hidden} more that must not be")
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    """Print the report; 1 if a limit is broken."""
    folder = _PRODUCT
    if words:
        folder = Path(words[0]).resolve()
    data = folder / _NOT_OURS
    paths = [path for path in folder.rglob("*.py") if not path.is_relative_to(data)]
    counts = count(sorted(paths))
    print(report(counts, folder.parent))
    is_dense = any(figure.value > figure.limit for figure in figures(counts))
    if is_dense or counts.forbidden:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
