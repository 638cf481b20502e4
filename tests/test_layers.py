import ast
from collections.abc import Iterator
from pathlib import Path

import codex_py

PACKAGE = Path(codex_py.__file__).parent

LAYERS = [
    {"errors", "instructions", "ordinary_files", "own_files", "programs", "protocol"},
    {"model", "patch", "process", "sandbox", "rollout", "config", "execpolicy", "mcp"},
    {"tools"},
    {"core"},
    {
        *(
            "app",
            "mcp_login",
            "mcp_servers",
            "model_access",
            "notify",
            "output_schema",
            "user_programs",
            "patching",
            "thread",
            "toolbox",
        ),
        "turn_settings",
    },
    {"frontends", "testing", "__main__"},
]
"""Each imports what is before it, and no sibling but those of the first and the last two layers."""

CORE_MAY_IMPORT = {"errors", "protocol", "instructions", "ordinary_files", "core"}
FRONTENDS_MAY_IMPORT = {
    *("app", "patching", "core", "protocol", "config", "errors", "instructions", "frontends"),
    *("mcp_login", "mcp_servers", "model_access", "output_schema", "turn_settings"),
    *("patch", "sandbox", "execpolicy", "rollout", "process", "programs", "mcp"),
    *("ordinary_files", "own_files"),
}
"""Those of the last line, because they are used without a session too."""


def imports() -> Iterator[tuple[str, str, str]]:
    """`(importing file, its part, imported part)` for every import of ours."""
    for path in PACKAGE.rglob("*.py"):
        if "demo_repo" in path.parts:
            continue
        file = path.relative_to(PACKAGE)
        part = file.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                package, _, rest = name.partition(".")
                if package == "codex_py" and rest:
                    yield str(file), part, rest.partition(".")[0]


def layer(part: str) -> int:
    return next(n for n, parts in enumerate(LAYERS) if part in parts)


def test_imports_point_down_and_siblings_leave_each_other_alone() -> None:
    wrong: list[str] = []
    for file, part, imported in imports():
        if part in {"__init__", imported}:
            continue
        sibling = layer(part) == layer(imported) and layer(part) in {1, 2, 3}
        if layer(imported) > layer(part) or sibling:
            wrong.append(f"{file} imports {imported}")
    assert wrong == []


def test_core_is_handed_what_it_needs() -> None:
    wrong = [(f, i) for f, part, i in imports() if part == "core" and i not in CORE_MAY_IMPORT]
    assert wrong == []


def test_frontends_know_the_app_and_not_its_parts() -> None:
    wrong = [
        (f, i) for f, part, i in imports() if part == "frontends" and i not in FRONTENDS_MAY_IMPORT
    ]
    assert wrong == []
