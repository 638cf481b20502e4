"""The examples of the README and of the documentation are run as they stand, against a scripted model."""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import codex_py
from codex_py.cli.commands import find_command
from codex_py.cli.help_pages import help_text
from codex_py.cli.package_commands import further_members, package_command
from codex_py.protocol.provider_ids import BUILT_IN_PROVIDERS, LOCAL_PROVIDERS
from codex_py.testing import (
    RecordedRequest,
    ev_completed,
    ev_created,
    ev_function_call,
    ev_message,
)
from scripts.demo_movie import DESCRIPTION
from tests.support.documents import (
    DOCS,
    PAGES,
    ROOT,
    blocks,
    name_of,
    reader_environment,
)
from tests.support.server import ScriptedServer

README = PAGES[0].read_text(encoding="utf-8")
_PROGRAM_S = 60
"""How long one program may take, on a machine that does much else too."""
HELLO = "Hello! What are we working on?"
ANSWERS = {
    "Say hello": HELLO,
    "Write release notes": "First release.",
    "Rate this repo": '{"stars": 5}',
    "And in one word?": "Hello.",
}


def pictures_of_two_looks() -> list[tuple[str, str, str]]:
    """`(dark, light, description)` of each picture that GitHub chooses by the reader's theme."""
    dark = r'<source media="\(prefers-color-scheme: dark\)" srcset="(.*?)">'
    light = r'<img src="(.*?)" alt="(.*?)">'
    return re.findall(
        rf"^<picture>\n  {dark}\n  {light}\n</picture>$", README, re.MULTILINE
    )


def test_the_moving_picture_is_there_and_described() -> None:
    moving = pictures_of_two_looks()[0]
    assert moving[:2] == ("docs/demo-dark.svg", "docs/demo-light.svg")
    assert moving[2] == DESCRIPTION
    assert [name for name in moving[:2] if not (ROOT / name).is_file()] == []


def test_pictures_are_there_small_and_described() -> None:
    shown = {
        page.parent / path: text
        for page in PAGES
        for text, path in re.findall(
            r"!\[(.*?)\]\((?!http)(.*?)\)", page.read_text(encoding="utf-8")
        )
    }
    for dark, light, description in pictures_of_two_looks()[1:]:
        shown[ROOT / dark] = shown[ROOT / light] = description
    assert set(shown) == set(DOCS.glob("*.png"))
    for path, text in shown.items():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 150_000
        assert len(text.split()) > 5


def examples(page: Path) -> list[tuple[str, str]]:
    """`(command, output)` of everything that the page shows at a prompt, in order."""
    found: list[tuple[str, str]] = []
    for block in blocks("console", page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def answer(request: RecordedRequest) -> list[Mapping[str, Any]]:
    """What the model of the README says to its prompts."""
    prompt = next(
        part["text"]
        for item in reversed(request.input)
        if item.get("role") == "user"
        for part in item["content"]
    )
    if prompt.startswith("Count the lines"):
        if request.input[-1]["type"] == "function_call_output":
            return [ev_created(), *ev_message("notes.txt has 3 lines."), ev_completed()]
        call = ev_function_call("call_1", "exec_command", {"cmd": "wc -l notes.txt"})
        return [ev_created(), *call, ev_completed()]
    text = next(text for start, text in ANSWERS.items() if prompt.startswith(start))
    return [ev_created(), *ev_message(text), ev_completed()]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".codex"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "notes.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (folder / "schema.json").write_text('{"required": ["stars"]}', encoding="utf-8")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (
        ["init", "-q"],
        ["add", "."],
        [*identity, "commit", "-qm", "First"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def same_but_for_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)


@pytest.mark.timeout(_PROGRAM_S * 20)
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=name_of(page)) for page in PAGES if examples(page)]
)
def test_every_example_prints_what_the_page_shows(
    tmp_path: Path, home: Path, repo: Path, page: Path
) -> None:
    with ScriptedServer([answer] * 20) as server:
        config = server.config_toml().replace('model = "gpt-5.5"\n', "")
        (home / "config.toml").write_text(config, encoding="utf-8")
        for command, output in examples(page):
            if command.startswith("codex-py exec resume"):
                run('codex-py exec "Say hello"', tmp_path, repo)
            assert same_but_for_ids(run(command, tmp_path, repo)) == same_but_for_ids(
                output
            )


def test_the_examples_are_found() -> None:
    assert {"README", "exec", "mcp", "patches"} <= {
        name_of(page) for page in PAGES if examples(page)
    }


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=name_of(page)) for page in PAGES]
)
def test_every_command_that_is_not_run_exists_with_its_options(page: Path) -> None:
    """They need a key, a network or a person: their words are looked up in the help."""
    for line in "".join(blocks("sh", page.read_text(encoding="utf-8"))).splitlines():
        program, *words = shlex.split(line.partition(" | ")[0], comments=True) or [""]
        if program.endswith("scripts/run"):
            program = "codex-py"
        elif program.startswith("scripts/"):
            assert os.access(ROOT / program, os.X_OK)
        if program != "codex-py":
            continue
        words = words[: words.index("--")] if "--" in words else words
        command = find_command(words[0]) if words else None
        added = package_command(words[0]) if words and command is None else None
        is_command = command is not None or added is not None
        assert is_command or not words or not words[0].isalpha(), line
        text = help_text("" if command is None else command.names[0])
        if words[:1] == ["resume"]:
            # It is the terminal's, which takes options of `exec`.
            text = help_text("exec")
        if added is not None:
            text = added.help_text()
        if command is not None and words[1:] and command.members:
            members = [*command.members, *further_members(command.names[0])]
            assert words[1] in members, line
        used = [word.partition("=")[0] for word in words if re.match("--?[a-z]", word)]
        assert [
            option for option in used if not re.search(rf"{option}\b", text)
        ] == [], line


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=name_of(page)) for page in PAGES]
)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```$|`[^`\n]*`",
        "",
        page.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not leads_somewhere(page, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    is_outside = not target.resolve().is_relative_to(DOCS)
    if not target.is_file() or (page != PAGES[0] and is_outside):
        return False
    if not anchor:
        return True
    headings = re.findall(
        r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE
    )
    return anchor in map(anchor_of, headings)


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_reference_of_the_library_has_every_public_name() -> None:
    page = (DOCS / "library-reference.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto\w+:: codex_py\.(\w+)$", page, re.MULTILINE)
    assert sorted([*listed, "__version__"]) == sorted(codex_py.__all__)


def test_the_navigation_has_every_page() -> None:
    listed = [*listed_in(DOCS / "index.md"), *listed_in(DOCS / "how-to" / "index.md")]
    assert sorted([*listed, "index"]) == sorted(map(name_of, PAGES[1:]))


def listed_in(page: Path) -> list[str]:
    """The names of the pages in the table of contents of a page."""
    trees = "".join(blocks(r"\{toctree\}", page.read_text(encoding="utf-8")))
    names = re.findall(r"^(?:.*<)?([a-z/-]+)>?$", trees, re.MULTILINE)
    return [name_of(page.parent / f"{name}.md") for name in names]


@pytest.mark.parametrize("page", [DOCS / "index.md", DOCS / "how-to" / "index.md"])
def test_each_page_of_the_navigation_has_a_line_that_says_what_it_is_for(
    page: Path,
) -> None:
    text = page.read_text(encoding="utf-8")
    lines = dict(re.findall(r"^- \[[^\]]+\]\(([^)]+)\): (.+)$", text, re.MULTILINE))
    described = {name_of(page.parent / target) for target in lines}
    assert [name for name in listed_in(page) if name not in described] == []


def run(command: str, tmp_path: Path, repo: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=repo,
        env=reader_environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PROGRAM_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
    return done.stdout.decode()


def test_the_provider_example_is_a_valid_configuration(
    tmp_path: Path, home: Path, repo: Path
) -> None:
    (example,) = blocks("toml", README)
    (home / "config.toml").write_text(example, encoding="utf-8")
    command = "codex-py config explain model_providers.mine.base_url --strict-config"
    assert '"https://llm.example.com/v1"' in run(command, tmp_path, repo)


def test_the_readme_counts_and_names_the_built_in_providers() -> None:
    remote = [name for name in BUILT_IN_PROVIDERS if name not in LOCAL_PROVIDERS]
    counted = f"{len(remote)} providers and {len(LOCAL_PROVIDERS)} local servers"
    assert counted in README
    assert [name for name in BUILT_IN_PROVIDERS if f"`{name}`" not in README] == []


def test_the_scripts_that_the_readme_names_are_there() -> None:
    names = set(re.findall(r"scripts/([a-z-]+)", README))
    assert {
        name for name in names if not os.access(ROOT / "scripts" / name, os.X_OK)
    } == set()
