"""Draws parts of the terminal for columns of a number, without a terminal: what is sent to one, with its styles."""

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import AnyContainer, Layout
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import print_formatted_text
from prompt_toolkit.styles import Style

from codex_py.config.config import load_config
from codex_py.frontends.tui.fitting import Fragments, fit, joined, status_gap
from codex_py.frontends.tui.keymap import Keymap
from codex_py.frontends.tui.panel import Panel
from codex_py.frontends.tui.theme import Theme
from tests.frontends.tui.shown import Shown

WIDTHS: Final = (60, 80, 140)
THEMES: Final[Mapping[str, Theme]] = {
    name: Theme(color_system="truecolor", background=name) for name in ("dark", "light")
}
ROWS: Final = 30

PATCH: Final = """\
diff --git a/src/parser.py b/src/parser.py
--- a/src/parser.py
+++ b/src/parser.py
@@ -98,5 +98,6 @@ class Parser:
     def number(self, token: Token) -> float:
-        value = float(token.text)
+        value = float(token.text.replace("_", ""))
+        self.count += 1
         if value < 0:
             raise ParseError(f"a negative number: {token.text!r}")
         return value
diff --git a/tests/test_parser.py b/tests/test_parser.py
new file mode 100644
--- /dev/null
+++ b/tests/test_parser.py
@@ -0,0 +1,2 @@
+def test_underscores_are_left_out() -> None:
+    assert Parser("1_000").parse() == 1000.0  # 漢字
"""
ANSWER: Final = """\
## What changed

The parser reads `1_000` as a number; **negative ones** are refused, see [the manual](https://example.com/numbers).

```python
def number(token: Token) -> float:
    return float(token.text.replace("_", ""))  # a comment that is too long \
for narrow terminals and for wide ones, which is well above 140 columns
```

| file | change |
|------|--------|
| `src/parser.py` | reads underscores in numbers, counts what it has read, and says which number was refused |
| `tests/test_parser.py` | new |

- [x] the parser
- [ ] its documentation, of which **some"""


KEYMAP: Final = Keymap(
    load_config(cwd="/", environment={"HOME": "/"}, ignore_user_config=True)
)
Situation: TypeAlias = Callable[[int, Theme], str]
_STEPS: Final = 10
"""Of the event loop, in which a panel finds its rows."""


def live(shown: Shown, theme: Theme) -> str:
    return drawn(shown.transcript.live(shown.width, ROWS), theme)


def drawn(rows: Sequence[Fragments], theme: Theme) -> str:
    """What prompt-toolkit sends of them, without what moves the cursor."""
    file = io.StringIO()
    output = Vt100_Output(file, lambda: Size(rows=ROWS, columns=500), enable_cpr=False)
    depth = ColorDepth.DEPTH_24_BIT if theme.color else ColorDepth.DEPTH_1_BIT
    style = Style.from_dict(theme.fragment_styles())
    print_formatted_text(
        FormattedText(joined(rows)),
        output=output,
        style=style,
        color_depth=depth,
        include_default_pygments_style=False,
    )
    return (
        file.getvalue()
        .replace("\r", "")
        .replace("\x1b[?7h", "")
        .replace("\x1b[0m\x1b[0m", "\x1b[0m")
    )


def panel_text(width: int, theme: Theme, *panels: Callable[[], Panel[Any]]) -> str:
    """Panels, each with the row of its keys, as they stand in the composer's place."""

    async def rows() -> list[Fragments]:
        shown: list[Fragments] = []
        for make in panels:
            shown += await panel_rows(make(), output)
        return shown

    output = Vt100_Output(io.StringIO(), lambda: Size(rows=ROWS, columns=width))
    with set_app(Application[None](input=DummyInput(), output=output)):
        return drawn(asyncio.run(rows()), theme)


async def panel_rows(panel: Panel[Any], output: Vt100_Output) -> list[Fragments]:
    """With the row of its keys. The panel cannot be used afterwards."""
    panel.changed, panel.named = lambda: None, KEYMAP.named
    for _ in range(_STEPS):
        await asyncio.sleep(0)
    gap: list[Fragments] = [[]] * status_gap(ROWS)
    hint: Fragments = [
        (
            "class:quiet",
            f"  {fit(KEYMAP.named(panel.hint), output.get_size().columns - 2)}",
        )
    ]
    rows = [[], *_rows_of(panel.container, output), *gap, hint]
    panel.result.cancel()
    return rows


def window_text(width: int, theme: Theme, container: AnyContainer) -> str:
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=ROWS, columns=width))
    return drawn([*_rows_of(container, output), []], theme)


def _rows_of(container: AnyContainer, output: Vt100_Output) -> list[Fragments]:
    app = Application[None](Layout(container), input=DummyInput(), output=output)
    with set_app(app):
        app.renderer.render(app, app.layout)
    screen = app.renderer.last_rendered_screen
    assert screen is not None
    columns = output.get_size().columns
    rows: list[Fragments] = []
    for y in range(screen.height):
        cells = [screen.data_buffer[y][x] for x in range(columns)]
        while (
            cells and cells[-1].char == " " and "class:selected" not in cells[-1].style
        ):
            cells.pop()
        # A wide character takes two cells, of which the second is empty.
        rows.append([(_classes(cell.style), cell.char) for cell in cells])
    return rows


def _classes(style: str) -> str:
    """Without what prompt-toolkit adds for no style of ours."""
    return " ".join(word for word in style.split() if word != "class:")


def asked(ask: Callable[[Any], Awaitable[object]]) -> Callable[[], Panel[Any]]:
    """The first panel that is asked of what is given to `ask` as its panels."""
    found: list[Panel[Any]] = []

    class Asked(Exception):
        pass

    class Panels:
        named = staticmethod(KEYMAP.named)

        async def ask(self, panel: Callable[[], Panel[Any]], **_: object) -> None:
            found.append(panel())
            raise Asked

    def make() -> Panel[Any]:
        # Nothing in it waits for anything before it asks.
        with suppress(Asked):
            ask(Panels()).__await__().send(None)  # pyright: ignore[reportAttributeAccessIssue]
        return found[0]

    return make


def screen_of(width: int, theme: Theme) -> Any:
    """What parts of the terminal want to know of its screen."""
    size = Size(rows=ROWS, columns=width)
    return SimpleNamespace(theme=theme, width=width, height=ROWS, size=lambda: size)
