"""Extensions of installed packages, as `docs/extensions.md` shows one.

Tests `app/guarded_extension.py` and `app/installed.py`.
"""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codex_py import (
    CodexError,
    SessionOptions,
    TurnResult,
    load_config,
    open_session,
)
from codex_py.app.guarded_extension import ExtensionBug
from codex_py.protocol.bugs import bug_line
from codex_py.protocol.event_items import ErrorItem
from codex_py.protocol.events import Event, ItemCompleted
from codex_py.protocol.extension import Extension, NewChild, Thread
from codex_py.testing import ev_completed, ev_message
from tests.support.packages import install_package, shown_block
from tests.support.program import Workplace, environment
from tests.support.server import ScriptedServer

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs/extensions.md").read_text(encoding="utf-8")


def block(start: str) -> str:
    """The first code block of the documentation that begins so."""
    found, *_ = re.findall(
        rf"^```\w+\n({re.escape(start)}.*?)^```$", DOC, re.MULTILINE | re.DOTALL
    )
    return found


def install(folder: Path, module: str) -> None:
    points = block('[project.entry-points."codex_py.extensions"]').splitlines()[1:]
    group = dict(line.replace('"', "").split(" = ") for line in points)
    install_package(folder, "codex_py_shout", module, {"codex_py.extensions": group})


def configure(place: Workplace, server: ScriptedServer, table: str) -> None:
    place.configure(server)
    with (place.home / "config.toml").open("a", encoding="utf-8") as config:
        config.write(table)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages"), *sys.path])
    monkeypatch.delitem(sys.modules, "codex_py_shout", raising=False)
    return tmp_path / "packages"


def last_message(place: Workplace) -> str | None:
    return turn_of(place).last_message


def turn_of(place: Workplace) -> TurnResult:
    async def main() -> TurnResult:
        variables = environment(place.home)
        config = load_config(cwd=place.cwd, environment=variables)
        opening = open_session(
            config, SessionOptions(), lambda _: None, environment=variables
        )
        async with opening as session:
            return await session.run_turn("go")

    return asyncio.run(main())


def warnings_of(place: Workplace) -> list[str]:
    """The warnings of a session that is opened and does nothing."""
    events: list[Event] = []

    async def main() -> None:
        variables = environment(place.home)
        config = load_config(cwd=place.cwd, environment=variables)
        opening = open_session(
            config, SessionOptions(), events.append, environment=variables
        )
        async with opening as session:
            await session.run_turn("go")

    asyncio.run(main())
    items = [event.item for event in events if isinstance(event, ItemCompleted)]
    return [item.message for item in items if isinstance(item, ErrorItem)]


def says(text: str) -> list[dict[str, object]]:
    return [*ev_message(text), ev_completed()]


def test_an_installed_extension_works_once_it_is_named(
    place: Workplace, packages: Path
) -> None:
    install(packages, block("from codex_py import"))
    with ScriptedServer([says("one two three four"), says("one two")]) as server:
        configure(place, server, block("[extensions.shout]"))
        assert last_message(place) == "one two"
        assert "Say it in 3 words." in str(server.requests[1].input[-1])
    with ScriptedServer([says("one two three four")]) as server:
        place.configure(server)
        assert last_message(place) == "one two three four"


def test_an_extension_that_fails_is_reported_in_one_sentence(
    place: Workplace, packages: Path
) -> None:
    install(packages, "import no_such_module\n")
    with ScriptedServer([]) as server:
        configure(place, server, "[extensions.shout]\n")
        with pytest.raises(
            CodexError, match="cannot be used: ModuleNotFoundError"
        ) as raised:
            last_message(place)
    assert raised.value.exit_code == 78


_HEAD = """
from contextlib import nullcontext
from codex_py import CodexError, Extension, Note, OfferedTool

def fails(*_):
    raise ValueError("odd")

async def fails_later(*_):
    raise ValueError("odd")

def gives(value):
    return lambda *_: value

def later(value):
    async def give(*_):
        return value
    return give
"""
_NAME = "the extension 'shout' (codex_py_shout:feature)"


@pytest.mark.parametrize(
    ("feature", "told"),
    [
        ("fails", " cannot be used: ValueError('odd')"),
        ("gives(5)", " cannot be used: its entry point returned int, not a feature"),
        ("gives(None)", " cannot be used: its entry point returned NoneType, not"),
        ("gives(fails)", " failed in its feature: ValueError('odd')"),
        ("gives(gives(5))", ": its feature returned int, not an `Extension`"),
        ("gives(gives(None))", ": its feature returned None, not an `Extension`"),
        ("gives(later(5))", ": its feature returned coroutine, not an `Extension`"),
        ("gives(lambda: Extension())", " failed in its feature: TypeError("),
        (
            "gives(gives(Extension(before_stop=Note('x'))))",
            ": its feature returned Extension, not an `Extension` whose `before_stop` is a function",
        ),
        (
            "gives(gives(Extension(tools=[fails])))",
            "an `Extension` whose `tools` are a list of `OfferedTool`",
        ),
        (
            "gives(gives(Extension(wrap_model=fails)))",
            " failed in `wrap_model`: ValueError('odd')",
        ),
        (
            "gives(gives(Extension(wrap_model=gives(None))))",
            ": `wrap_model` returned None, not a function",
        ),
        (
            "gives(gives(Extension(around_session=fails)))",
            " failed in `around_session`: ValueError('odd')",
        ),
        (
            "gives(gives(Extension(around_session=later(None))))",
            ": `around_session` returned coroutine, not an async context manager",
        ),
    ],
)
def test_an_extension_that_cannot_be_opened_is_reported_with_its_name(
    place: Workplace, packages: Path, feature: str, told: str
) -> None:
    install(packages, f"{_HEAD}\nfeature = {feature}\n")
    with ScriptedServer([]) as server:
        configure(place, server, "[extensions.shout]\n")
        with pytest.raises(CodexError, match=re.escape(_NAME)) as raised:
            turn_of(place)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert str(place.home / "config.toml") in str(raised.value)
    assert raised.value.exit_code == 78


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ("before_stop=fails_later", " failed in `before_stop`: ValueError('odd')"),
        (
            "before_stop=gives(Note('x'))",
            ": `before_stop` must be an `async def`; it returned Note",
        ),
        (
            "before_stop=later('go on')",
            ": `before_stop` returned str, not a `Note` or None",
        ),
        ("before_prompt=fails_later", " failed in `before_prompt`: ValueError('odd')"),
        (
            "before_prompt=gives([])",
            ": `before_prompt` must be an `async def`; it returned list",
        ),
        (
            "before_prompt=later('x')",
            ": `before_prompt` returned str, not a list of `Note`",
        ),
        (
            "before_request=later(['x'])",
            ": `before_request` returned list, not a list of `Note`",
        ),
        ("context=gives(None)", ": `context` returned None, not a list of `Note`"),
        ("context=fails", " failed in `context`: ValueError('odd')"),
        (
            "around_turn=gives(None)",
            ": `around_turn` returned None, not an async context manager",
        ),
        ("around_turn=fails", " failed in `around_turn`: ValueError('odd')"),
    ],
)
def test_a_bug_of_one_ends_the_turn_with_its_name_and_the_field(
    place: Workplace, packages: Path, fields: str, told: str
) -> None:
    install(packages, f"{_HEAD}\nfeature = gives(gives(Extension({fields})))\n")
    with ScriptedServer([says("done")]) as server:
        configure(place, server, "[extensions.shout]\n")
        with pytest.raises(ExtensionBug) as raised:
            turn_of(place)
    # The end of the turn quotes it as `internal error`.
    assert bug_line(raised.value) == f"internal error: {_NAME}{told}"


def test_an_error_that_one_means_is_passed_on_as_it_is(
    place: Workplace, packages: Path
) -> None:
    meant = "async def stop(_):\n    raise CodexError('Enough.', code='enough')\n"
    install(
        packages,
        f"{_HEAD}\n{meant}\nfeature = gives(gives(Extension(before_stop=stop)))\n",
    )
    with ScriptedServer([says("done")]) as server:
        configure(place, server, "[extensions.shout]\n")
        error = turn_of(place).error
    assert error is not None
    assert (str(error), error.code) == ("Enough.", "enough")


def test_others_find_a_feature_by_its_class(place: Workplace, packages: Path) -> None:
    install(
        packages,
        f"{_HEAD}\n"
        "class Counter:\n"
        "    count = 7\n"
        "    def __call__(self, thread):\n"
        "        async def before_stop(_):\n"
        "            return Note(f'{thread.feature(Counter).count} times')\n"
        "        return Extension(before_stop=before_stop, max_rounds=1)\n"
        "feature = gives(Counter())\n",
    )
    with ScriptedServer([says("one"), says("two")]) as server:
        configure(place, server, "[extensions.shout]\n")
        assert last_message(place) == "two"
        assert "7 times" in str(server.requests[1].input[-1])


def test_an_extension_that_is_not_installed_ends_the_program(place: Workplace) -> None:
    with ScriptedServer([]) as server:
        configure(place, server, "[extensions.missing]\n")
        outcome = place.rerun()
    assert outcome.code == 78
    assert (
        "no installed package has an extension 'missing'"
        in f"{outcome.err}{outcome.events}"
    )
    assert "Traceback" not in outcome.err


def test_a_project_names_none(place: Workplace) -> None:
    folder = place.cwd / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text("[extensions.missing]\n", encoding="utf-8")
    subprocess.run(["git", "init", "-q", place.cwd], check=True)
    with ScriptedServer([says("done")]) as server:
        trusted = f"[projects.{json.dumps(str(place.cwd))}]\ntrust_level = 'trusted'\n"
        configure(place, server, trusted)
        outcome = place.rerun()
    assert outcome.code == 0
    assert (
        f"Ignored `extensions` in {folder}/config.toml: a project may not set this."
        in str(outcome.events)
    )


def test_nothing_is_looked_up_that_is_not_named(place: Workplace) -> None:
    with ScriptedServer([says("done")]) as server:
        outcome = place.run(server, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert "codex_py.app.session" in outcome.err
    assert "importlib.metadata" not in outcome.err


def with_keys(packages: Path) -> None:
    """Install the package whose entry point declares its keys."""
    module = shown_block("class Settings(Section)")
    install(packages, module.replace("class Settings", "class feature"))


@pytest.mark.parametrize(
    ("table", "warning"),
    [
        ("[extensions.shout]\n", "at most 5 words, loud: False"),
        ("[extensions.shout]\nwords = 3\nloud = true\n", "at most 3 words, loud: True"),
    ],
)
def test_an_extension_gets_the_keys_that_it_declares(
    place: Workplace, packages: Path, table: str, warning: str
) -> None:
    with_keys(packages)
    with ScriptedServer([says("done")]) as server:
        configure(place, server, table)
        warnings = warnings_of(place)
    assert warnings == [warning]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "words = 0",
            "`extensions.shout.words` must be an integer of more than 0, not `0`",
        ),
        ("words = 'x'", "`extensions.shout.words` must be an integer of more than 0"),
        ("loud = 1", "`extensions.shout.loud` must be a boolean, not `1`"),
        ("luod = true", "`extensions.shout.luod` is unknown; did you mean `loud`?"),
        ("is_loud = true", "`extensions.shout.is_loud` is unknown"),
        ("other = 1", "`extensions.shout.other` is unknown"),
    ],
)
def test_a_wrong_key_of_an_extension_stops_the_start(
    place: Workplace, packages: Path, setting: str, message: str
) -> None:
    with_keys(packages)
    with ScriptedServer([]) as server:
        configure(place, server, f"[extensions.shout]\n{setting}\n")
        with pytest.raises(CodexError, match=re.escape(message)) as raised:
            turn_of(place)
    assert raised.value.exit_code == 78
    assert re.search(r"config\.toml:\d+: ", str(raised.value))


CHILD = """
from codex_py import Extension

class Named:
    def __init__(self, name):
        self.name = name
    def for_child(self, setup):
        return CHILD
    def __call__(self, thread):
        thread.warn(f"{self.name} of {'a child' if thread.parent else 'the top'}")
        return Extension()

def feature(table):
    return FEATURE
"""


@pytest.mark.parametrize(
    ("feature", "child", "warned"),
    [
        ("Named('one')", "Named('other')", ["one of the top", "Ada: other of a child"]),
        ("Named('one')", "self", ["one of the top", "Ada: one of a child"]),
        (
            "Named('one').__call__",
            "None",
            ["one of the top", "Ada: one of a child"],
        ),
    ],
)
def test_a_child_has_the_feature_of_its_parent_or_the_one_that_it_makes(
    place: Workplace, packages: Path, feature: str, child: str, warned: list[str]
) -> None:
    text = CHILD.replace("FEATURE", feature).replace("return CHILD", f"return {child}")
    install(packages, text)
    with ScriptedServer([]) as server:
        configure(place, server, "[extensions.shout]\n")
        assert warnings_of_child(place) == warned


@pytest.mark.parametrize(
    ("child", "told"),
    [
        ("1 / 0", " failed in `for_child`: ZeroDivisionError("),
        ("3", ": `for_child` returned int, not a function"),
    ],
)
def test_a_bug_in_the_feature_of_a_child_is_named(
    place: Workplace, packages: Path, child: str, told: str
) -> None:
    text = CHILD.replace("FEATURE", "Named('one')")
    install(packages, text.replace("return CHILD", f"return {child}"))
    with ScriptedServer([]) as server:
        configure(place, server, "[extensions.shout]\n")
        with pytest.raises(CodexError) as raised:
            warnings_of_child(place)
    assert f"{_NAME}{told}" in str(raised.value)


def warnings_of_child(place: Workplace) -> list[str]:
    """The warnings of a session that opens a child and does nothing else."""
    events: list[Event] = []

    async def main() -> None:
        variables = environment(place.home)
        config = load_config(cwd=place.cwd, environment=variables)
        threads: list[Thread] = []

        def keep(thread: Thread) -> Extension:
            threads.append(thread)
            return Extension()

        opening = open_session(
            config,
            SessionOptions(),
            events.append,
            environment=variables,
            extensions=[keep],
        )
        async with opening, threads[0].open_child(NewChild("Ada")):
            pass

    asyncio.run(main())
    items = [event.item for event in events if isinstance(event, ItemCompleted)]
    return [item.message for item in items if isinstance(item, ErrorItem)]
