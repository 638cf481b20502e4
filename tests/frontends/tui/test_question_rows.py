"""What a question about a call shows on screens of several sizes, and what its full view has.

Tests `frontends/tui/panel.py`.
"""

import asyncio
import io
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import fragment_list_to_text
from prompt_toolkit.input import DummyInput
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from codex_py.frontends.tui.approval import TerminalApprover
from codex_py.frontends.tui.overlay import Pages
from codex_py.frontends.tui.questions import ask_user
from codex_py.protocol.approval import ApprovalRequest
from codex_py.protocol.mcp import Elicitation, UserQuestion
from tests.frontends.tui.drawing import asked, panel_rows, panel_text
from tests.frontends.tui.shown import PLAIN, Shown

PUSH = (
    "curl -sS http://127.0.0.1:9/ && echo fetched; "
    "git push origin HEAD:refs/heads/main-of-mine --force-with-lease"
)
SAID = "I need the newest one, for the tests of the parser fail with the one before."
COMMAND = ApprovalRequest(
    kind="command",
    summary=f"/bin/bash -lc '{PUSH}'",
    cwd=Path("/repo"),
    reason=f"outside of the sandbox, where the network is: {SAID}",
    justification=SAID,
    agent="Anna",
)
LONG = replace(COMMAND, summary="\n".join(f"echo line {n}" for n in range(60)))
SHORT = replace(COMMAND, summary="ls", agent=None)


def draw(
    request: ApprovalRequest, columns: int, rows: int
) -> tuple[list[str], list[Pages]]:
    """The rows of the question, and the full view that Ctrl-T opens."""
    shown = Shown(columns, PLAIN)
    screen: Any = SimpleNamespace(theme=PLAIN, width=columns, height=rows)
    opened: list[Pages] = []
    overlays: Any = SimpleNamespace(open=opened.append)
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=rows, columns=columns))

    async def drawn() -> list[str]:
        make = asked(
            lambda panels: TerminalApprover(
                panels, shown.transcript, screen, overlays
            ).review(request)
        )
        panel = make()
        call: Any = panel.keys.get_bindings_for_keys((Keys.ControlT,))[-1]
        call.handler(SimpleNamespace(key_sequence=[KeyPress(Keys.ControlT)]))
        return [fragment_list_to_text(row) for row in await panel_rows(panel, output)]

    with set_app(Application[None](input=DummyInput(), output=output)):
        return asyncio.run(drawn()), opened


@pytest.mark.parametrize("size", [(40, 12), (60, 12), (80, 10), (80, 24)])
def test_a_command_that_fits_is_shown_whole(size: tuple[int, int]) -> None:
    rows, _ = draw(COMMAND, *size)
    text = " ".join(row.strip() for row in rows)
    assert PUSH in text
    assert ("Why asked:" in text and "before." in text) or "(v shows all)" in text


@pytest.mark.parametrize(
    "size",
    [(c, r) for c in (40, 60, 80, 140) for r in (3, 6, 8, 10, 12, 16, 20, 24, 45)],
)
@pytest.mark.parametrize(
    "request_", [COMMAND, LONG, SHORT], ids=["command", "long", "short"]
)
def test_a_cut_question_says_how_to_see_all_of_it(
    request_: ApprovalRequest, size: tuple[int, int]
) -> None:
    rows, _ = draw(request_, *size)
    text = " ".join(row.strip() for row in rows)
    is_whole = all(
        part in text
        for part in (
            PUSH if request_ is COMMAND else request_.summary.replace("\n", " "),
            "Why asked: outside of the sandbox, where the network is",
            f"The model says: {SAID}",
        )
    )
    assert is_whole != ("(v shows all)" in text)
    assert re.search(r"\$ (curl|echo line|ls)", text)
    assert "> 4. No, and stop here (n)" in text
    assert not any(len(row) > size[0] for row in rows)


def test_the_reason_and_the_words_of_the_model_are_both_there() -> None:
    request = replace(LONG, reason=f"{'because it is so ' * 20}: {SAID}")
    rows, _ = draw(request, 80, 24)
    text = "\n".join(rows)
    assert "Why asked: because" in text
    assert "The model says: I need" in text


def test_the_full_view_has_all_that_the_question_is_about() -> None:
    request = replace(
        COMMAND,
        reason=f"{'because it is so ' * 80}: {SAID * 20}",
        justification=SAID * 20,
    )
    _, opened = draw(request, 40, 12)
    renderer = Shown(40, PLAIN).renderer
    text = " ".join(
        renderer.text(each.cell, 2000).strip() for each in opened[0].sections
    )
    said = (
        "Anna",
        "/repo",
        PUSH,
        "Why asked: because",
        "is so The model says: I need",
        SAID * 20,
    )
    for part in said:
        assert part in " ".join(text.split())


def test_the_full_view_of_a_host_has_its_reason() -> None:
    host = ApprovalRequest(
        kind="network",
        summary="a.example:443",
        cwd=Path("/repo"),
        reason="it is not on the list",
    )
    _, opened = draw(host, 40, 12)
    renderer = Shown(40, PLAIN).renderer
    text = "".join(renderer.text(each.cell, 80) for each in opened[0].sections)
    assert "a.example:443" in text
    assert "Why asked: it is not on the list" in text


def test_an_approval_says_what_esc_is_and_how_long_each_yes_holds() -> None:
    rows, _ = draw(replace(SHORT, prefix=("ls",)), 60, 24)
    text = " ".join(row.strip() for row in rows)
    assert "do not ask again for this command in this session (a)" in text
    assert "commands that start with `ls`, in any session (p)" in text
    assert rows[-1] == "  Enter or a key answers, Esc: no; text goes to your prompt"


def test_the_hint_of_a_question_of_the_model_fits_in_60_columns() -> None:
    question = UserQuestion("a", "", "Which format?", (("JSON", ""), ("Text", "")))
    form = Elicitation("codex-py", "", questions=(question,))
    shown = panel_text(60, PLAIN, asked(lambda panels: ask_user(panels, form)))
    assert "  Left: back, Esc: stop; other text goes to your prompt" in shown
