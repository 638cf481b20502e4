"""What follows a command: its questions, each answered, then what it says. See situations.py."""

import asyncio
import io
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output.vt100 import Vt100_Output

from codex_py.app.permissions import PERMISSIONS
from codex_py.config.config import load_config
from codex_py.frontends.tui.commands.rewind import REWIND
from codex_py.frontends.tui.commands.settings import SETTINGS
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.session_half import farewell
from codex_py.frontends.tui.theme import Theme
from codex_py.patch.files.change import TurnOfEntry
from codex_py.patch.files.journal import Journal
from codex_py.protocol.event_items import UserMessage
from codex_py.protocol.settings import Choices
from codex_py.protocol.stream import Usage
from tests.frontends.tui.drawing import (
    KEYMAP,
    ROWS,
    Situation,
    drawn,
    panel_rows,
    screen_of,
)
from tests.frontends.tui.shown import Shown
from tests.rollout.builders import meta, record, session_file
from tests.support.patching import patch

_PROMPTS: Final = (
    "Let the parser read 1_000.",
    "And now tests for all that it refuses, signs and exponents included, one for each rule of the manual",
)


def _nothing(*_: object) -> Any:
    pass


def _after(
    width: int,
    theme: Theme,
    run: Callable[[Any, Shown], Awaitable[None]],
    *answers: object,
    when_ready: Callable[[Any], Awaitable[object]] = _nothing,
) -> str:
    """The questions of a command and what it says. `run` gets the `TerminalUI`.

    `answers`: None is what `when_ready` gives when the panel can be drawn.
    """
    shown, left = Shown(width, theme), list(answers)
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=ROWS, columns=width))

    async def show(panel: Panel[Any]) -> Any:
        value = left.pop(0)
        if value is None:
            value = await when_ready(panel)
        shown.parts.append(drawn(await panel_rows(panel, output), theme) + "\n")
        return value

    async def work() -> None:
        screen = screen_of(width, theme)
        panels = SimpleNamespace(show=show)
        ui = SimpleNamespace(
            screen=screen, panels=panels, keymap=KEYMAP, safe_environment={}
        )
        with set_app(Application[None](input=DummyInput(), output=output)):
            await run(ui, shown)

    asyncio.run(work())
    return shown.text


def permissions(width: int, theme: Theme) -> str:
    """The list, the question about full access, and what holds from then on."""
    config = load_config(cwd="/", environment={"HOME": "/"}, ignore_user_config=True)
    now = PERMISSIONS[0]
    usual = Choices(
        model="gpt-5.5",
        reasoning_effort=None,
        reasoning_summary=None,
        approval_policy=now.policy,
        sandbox_policy=config.sandbox_policy(),
    )
    choices = now.given_to(usual, config, ())
    session = SimpleNamespace(settings=SimpleNamespace(choices=choices))

    async def run(ui: Any, shown: Shown) -> None:
        async def opened() -> Any:
            return session

        ui.launch = SimpleNamespace(add_dirs=())
        conversation = SimpleNamespace(opened=opened, change=_nothing)
        context: Any = SimpleNamespace(
            ui=ui,
            conversation=conversation,
            config=config,
            tell_change=shown.transcript.notice,
        )
        command = next(each for each in SETTINGS if each.name == "permissions")
        await command.run(context, "")

    return _after(width, theme, run, PERMISSIONS[-1], True)


def rewind(width: int, theme: Theme) -> str:
    """The prompts with what was changed, what is to go back, a file that was edited since, and what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        home, cwd = Path(folder, "home"), Path(folder, "repo")
        cwd.mkdir()
        (cwd / "parser.py").write_text("value = 1\n", "utf-8")
        head = meta(str(cwd))
        journal = Journal(home, cwd)
        lines = [
            record(
                "session_meta",
                {"id": head.id, "cwd": str(cwd), "timestamp": head.timestamp},
            )
        ]
        for n, text in enumerate(_PROMPTS):
            said = datetime(2026, 11, 1, 18, 2 + n).astimezone()
            stamp = said.isoformat()
            content = [{"type": "input_text", "text": text}]
            prompt = {"type": "message", "role": "user", "content": content}
            lines.append(record("event_msg", {"type": "task_started"}, timestamp=stamp))
            lines.append(record("response_item", prompt, timestamp=stamp))
            patch(
                journal,
                "*** Update File: parser.py",
                f"-value = {n + 1}",
                f"+value = {n + 2}",
            )
            done = journal.read(journal.numbers()[0])
            # As a turn, which was over half a minute later.
            done.turn, done.time = TurnOfEntry(head.id, n + 1), said.timestamp() + 30
            journal.write(done)
        path = session_file(home, lines, head.id)
        (cwd / "parser.py").write_text("value = 3  # mine\n", "utf-8")
        return _rewound(width, theme, home, cwd, path)


def _rolled_back(_turns: int) -> Any:
    return SimpleNamespace(text=_PROMPTS[1], images=())


def _rewound(width: int, theme: Theme, home: Path, cwd: Path, path: Path) -> str:
    session: Any = SimpleNamespace(
        past_prompts=lambda: _PROMPTS,
        session_file=path,
        thread_id=path.stem[-36:],
        rollback=_rolled_back,
    )

    counted = asyncio.Semaphore(0)

    async def last_row(picker: Any) -> object:
        # The program counts while the user reads the list.
        for _ in _PROMPTS:
            await counted.acquire()
        return picker._source[-1].value  # pyright: ignore[reportPrivateUsage]

    async def run(ui: Any, shown: Shown) -> None:
        async def opened() -> Any:
            return session

        ui.screen.changed = counted.release
        ui.composer = SimpleNamespace(set_text=_nothing)
        conversation = SimpleNamespace(
            opened=opened,
            session=session,
            is_working=False,
            plan_offer=SimpleNamespace(withdraw=_nothing),
            monitor=SimpleNamespace(said=[UserMessage(id="1", text="x")]),
        )
        context: Any = SimpleNamespace(
            ui=ui,
            conversation=conversation,
            transcript=shown.transcript,
            config=SimpleNamespace(home=home, cwd=cwd),
            undoing=asyncio.Lock(),
            overlays=SimpleNamespace(open=_nothing),
        )
        await REWIND[0].run(context, "")

    return _after(width, theme, run, None, "both", True, when_ready=last_row)


def leaving(width: int, theme: Theme) -> str:
    shown = Shown(width, theme)
    shown.answer("Done.")
    used = Usage(
        input_tokens=812_345, cached_input_tokens=700_000, output_tokens=23_456
    )
    return shown.text + farewell("0199a213-81c0-7800-8aa1-bbab2a035a53", used)


COMMANDS: Final[Mapping[str, Situation]] = {
    "permissions": permissions,
    "rewind": rewind,
    "farewell": leaving,
}
