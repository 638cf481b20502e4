"""What may import what. Imports for types count: a circle of names is a circle of thought."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import codex_py
from codex_py.cli.commands import COMMANDS

PACKAGE = Path(codex_py.__file__).parent

DRAWING = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
"""The page whose drawing says what may import what."""


def drawn() -> tuple[list[set[str]], dict[str, set[str]]]:
    """Read the drawing.

    Returns:
        The packages of each row, from the lowest row to the highest; and the packages that some of
        them see, if these are fewer than all that are below.
    """
    _, _, begun = DRAWING.partition("## The layers\n\n```\n")
    rows, _, exceptions = begun.partition("\n```")[0].partition("\n\n")
    layers = [set(line.partition("  ")[0].split(", ")) for line in rows.splitlines()]
    sees: dict[str, set[str]] = {}
    for line in exceptions.splitlines():
        who, seen = re.split(r" sees? +", line)
        sees[who] = set()
        for word in seen.split(", "):
            of_other = re.fullmatch(r"what (\w+) see", word)
            sees[who] |= {word} if of_other is None else sees[of_other[1]]
    return layers[::-1], sees


LAYERS, SEES = drawn()

TABLES = {"app.features.table", "app.model", "cli.completion", "cli.main"}
"""They load what the tables of features, wires and commands name."""
LOADED_BY_NAME = {
    *(("app.loading", "__import__"), ("", "__import__")),
    # Private modules, for which there are no types.
    ("sandbox.child.kernel", "__import__"),
    # Packages that need not be installed.
    *(
        ("config.mcp_logins", "import_module"),
        ("extensions.batch.ray_engine", "import_module"),
        # Extensions, which nothing names.
        ("registry", "import_module"),
    ),
    # The parts of a library, between which other tasks run.
    ("mcp.sdk", "import_module"),
}
MAX_LATE_IMPORTS = 65


def modules() -> Mapping[str, Path]:
    """Every module of ours by its name below `codex_py`, packages by their folder's."""
    found: dict[str, Path] = {}
    for path in PACKAGE.rglob("*.py"):
        if "repository" in path.parts:
            continue  # what the demo works on
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def trees() -> Mapping[str, ast.Module]:
    """The modules, parsed once, and not before a test runs: each process that runs tests imports this file."""
    return {
        name: ast.parse(path.read_text(encoding="utf-8"), str(path))
        for name, path in MODULES.items()
    }


def imported_by(tree: ast.AST) -> Iterator[str]:
    """The modules of ours that are imported anywhere in a tree, in functions too, or that its strings name."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # Either may be the module: what is imported, or what it is imported from.
            names = [
                inner
                if _local(inner := f"{node.module}.{alias.name}") in MODULES
                else node.module
                for alias in node.names
            ]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # Rows of the tables of features and wires.
            target = re.fullmatch(r"(codex_py(?:\.\w+)+)(?::\w+)?", node.value)
            names = [target[1]] if target is not None else []
        yield from (
            _local(name) for name in names if f"{name}.".startswith("codex_py.")
        )


def _local(name: str) -> str:
    return name.removeprefix("codex_py").removeprefix(".")


@cache
def imports() -> Mapping[str, set[str]]:
    """What each module of ours imports of us."""
    found = {name: set(imported_by(tree)) for name, tree in trees().items()}
    found["cli.commands"] |= {
        module.partition(":")[0]
        for command in COMMANDS
        for module in (command.module, *command.members.values())
        if module and not module.startswith("cli.")
    }
    return found


def part(module: str) -> str:
    """The package of a module, as it is drawn."""
    return module.partition(".")[0] or "codex_py"


def layer(package: str) -> int:
    return next(n for n, packages in enumerate(LAYERS) if package in packages)


def test_the_drawing_has_every_package_once() -> None:
    drawn = [package for packages in LAYERS for package in packages]
    assert sorted(drawn) == sorted({part(module) for module in MODULES})


def test_imports_point_down_and_siblings_leave_each_other_alone() -> None:
    wrong: list[str] = []
    for module, imported in imports().items():
        for other in imported:
            own = layer(part(module))
            sibling = own == layer(part(other)) > 0
            if part(module) == part(other):
                continue
            if layer(part(other)) > own or sibling:
                wrong.append(f"{module} imports {other}")
    assert wrong == []


def test_a_package_that_sees_less_than_all_below_imports_nothing_else() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, imported in imports().items()
        for other in imported
        if part(module) in SEES
        and part(other) not in {*SEES[part(module)], part(module)}
    ]
    assert wrong == []


def test_nothing_knows_a_room() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, imported in imports().items()
        for other in imported
        if part(other) == "extensions" != part(module)
    ]
    assert wrong == []


def room(module: str) -> str | None:
    """The frontend, command or extension that a module is part of; None for what frontends share."""
    parts = module.split(".")
    is_shared = parts[0] == "frontends" and len(parts) == 2
    return parts[1] if len(parts) > 1 and not is_shared else None


def test_no_frontend_command_or_room_imports_another() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, imported in imports().items()
        for other in imported
        if part(module) in {"commands", "extensions", "frontends"}
        and part(other) == part(module)
        and room(other) not in {None, room(module)}
    ]
    assert wrong == []


def circles() -> list[list[str]]:
    """Groups of modules that reach each other, by Tarjan's algorithm."""
    found: list[list[str]] = []
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in sorted(imports().get(module, ())):
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(imports()):
        if module not in number:
            visit(module)
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles() == []


def late_imports(module: str) -> Iterator[ast.Import | ast.ImportFrom]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for function in ast.walk(trees()[module]):
        if isinstance(function, functions):
            for statement in function.body:
                for node in ast.walk(statement):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        yield node


def test_late_imports_are_few_and_say_what_they_cost() -> None:
    late: set[str] = set()
    without_figure: list[str] = []
    for module, path in MODULES.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in late_imports(module):
            place = f"{path.relative_to(PACKAGE)}:{node.lineno}"
            late.add(place)
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if re.search(r"# \d+ ms\b", text) is None:
                without_figure.append(place)
    assert without_figure == []
    assert len(late) <= MAX_LATE_IMPORTS, sorted(late)


def test_nothing_but_the_tables_is_loaded_by_name() -> None:
    """A string gives `Any`: a mistake in what is called would be seen by nobody."""
    assert {
        m for m, imported in imports().items() if "app.loading" in imported
    } == TABLES
    by_name = {
        (module, name)
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and (name := node.id if isinstance(node, ast.Name) else node.attr)
        in {"__import__", "import_module"}
    }
    assert by_name == LOADED_BY_NAME
