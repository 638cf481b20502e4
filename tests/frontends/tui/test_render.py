"""What is hostile, in every field: rows stay in their width, and nothing raw reaches the terminal.

Also tests `frontends/tui/markdown.py`.
"""

import re
import time
from itertools import product

import pyte
import pytest
from prompt_toolkit.utils import get_cwidth

from codex_py.frontends.tui.theme import Theme, terminal_theme
from codex_py.protocol.event_items import (
    AgentMessage,
    Change,
    CommandExecution,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    ThreadItem,
    TodoEntry,
    TodoList,
    UserMessage,
    WebSearch,
)
from codex_py.protocol.events import CommandOutputDelta, ItemStarted
from tests.frontends.tui.shown import Shown
from tests.support.searches import sample

HOSTILE = {
    "escapes": "\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m\x9b31m\x90q\x9c " * 20,
    "unfinished escapes": "\x1b[\x1b]\x1bP\x1b" * 50,
    "writing directions": "abc\u202edef\u2066ghi\u200fj\ufeff",
    # This and the next one are more than a message shows as Markdown at once.
    "an endless line": "x" * 60_000,
    "many lines": "ab\n" * 17_000,
    "wide": "漢字かな" * 2_000,
    "emoji": "👨\u200d👩\u200d👧👍🏽🇩🇪❤\ufe0f1\ufe0f\u20e3" * 500,
    "marks": "e" + "\u0301" * 20_000,
    "tabs": "\ta\t" * 4_000,
    "progress": "\r".join(f"{n}%" for n in range(4_000)),
    "nul": "\0" * 10_000,
    "separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "entities": "&#x202e;&#27;&#0;&zwj;&#8232;&nbsp;",
    "brackets": "[" * 3_000 + "> " * 1_000 + "*a **b " * 500 + "_a" * 1_000,
    "table": "|a" * 500 + "\n" + "|-" * 500 + "\n" + "|b" * 500,
    "deep list": "\n".join(" " * (2 * n) + "- x" for n in range(200)),
    "stars": "*" * 800 + "a" + "*" * 800,
    "code of marks": "```\n" + "\u0e34" * 200 + "\n```\n",
    "surrogates": "\ud800\udfff" * 50,
}


def items(text: str) -> list[ThreadItem]:
    diff = "\n".join(f"+{line}" for line in text.split("\n"))
    return [
        UserMessage(id="1", text=text, images=[text]),
        ReasoningSummary(id="1", text=text),
        CommandExecution(
            id="1", command=text, aggregated_output=text, exit_code=1, status="failed"
        ),
        CommandExecution(id="1", command=f"bash -lc '{text}'", status="declined"),
        FileChange(id="1", changes=[Change(path=text, kind="add")], status="failed"),
        FileChange(id="1", changes=[Change(path=text, kind="add")], status="completed"),
        FileChange(
            id="1",
            changes=[],
            status="completed",
            diff=f"diff --git a/{text} b/{text}\nrename to {text}\n@@ -1,9000 +1,9000 @@\n{diff}",
        ),
        TodoList(
            id="1", explanation=text, items=[TodoEntry(text=text, completed=False)]
        ),
        McpToolCall(
            id="1",
            server=text,
            tool=text,
            arguments={text: [text]},
            result={"content": [{"type": "text", "text": text}]},
            status="completed",
        ),
        McpToolCall(
            id="1", server="a", tool="b", arguments=text, error={"message": text}
        ),
        WebSearch(id="1", query=text),
        ErrorItem(id="1", message=text),
        AgentMessage(id="1", text=text),
        AgentMessage(id="1", text=f"- a\n  ```py\n  {text[:1000]}"),
    ]


def is_harmless(row: str, width: int) -> bool:
    text = re.sub(r"\x1b\[[0-9;]*m", "", row)
    columns = sum(get_cwidth(char) for char in text)
    return (
        columns <= width
        and re.search("[\x00-\x1f\x7f-\x9f\u202e\u2066\u200f\u2028]", text) is None
    )


# The texts are no multiple of three, so that a sample has each of them, in one width.
@pytest.mark.parametrize(("width", "name"), sample([*product([3, 20, 60], HOSTILE)]))
def test_hostile_text_stays_in_its_rows(name: str, width: int) -> None:
    for item in items(HOSTILE[name]):
        shown = Shown(width, Theme())
        shown.tell(ItemStarted(item), CommandOutputDelta("1", HOSTILE[name]))
        live = shown.live(10)
        assert len(live) <= 10
        shown.complete(item)
        wrong = [row for row in (*live, *shown.lines) if not is_harmless(row, width)]
        assert wrong[:3] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_without_unicode_all_is_ascii(name: str) -> None:
    for item in items(HOSTILE[name][:500]):
        shown = Shown(40, Theme(unicode=False, dumb=True, color=False))
        shown.complete(item)
        assert shown.text.isascii()
        assert shown.text.replace("\n", "").isprintable()


def test_a_megabyte_is_shown_at_once() -> None:
    for item in items("some words, and then more of them\n" * 30_000)[:-2]:
        shown = Shown(60, Theme())
        before = time.process_time()
        shown.complete(item)
        # Far more than it takes: the machine may be slow.
        assert time.process_time() - before < 0.5, item.type
        assert len(shown.text) < 50_000


def test_a_dumb_terminal_gets_no_sequences_and_no_color_no_colours() -> None:
    dumb = Shown(theme=terminal_theme({"TERM": "dumb", "LANG": "C.UTF-8"}))
    gray = Shown(
        theme=terminal_theme({"TERM": "xterm", "LANG": "C.UTF-8", "NO_COLOR": "1"})
    )
    for shown in (dumb, gray):
        shown.answer("**bold** `code`\n\n```py\nif 1: pass\n```\n")
    assert "\x1b" not in dumb.text
    assert set(re.findall(r"\x1b\[[0-9;]*m", gray.text)) <= {
        "\x1b[0m",
        "\x1b[1m",
        "\x1b[2m",
    }
    assert "\x1b[1m" in gray.text


@pytest.mark.parametrize(
    "theme", [Theme(background="dark"), Theme(), Theme(color=False)]
)
def test_no_blank_of_a_long_line_of_code_is_lost_where_the_terminal_wraps_it(
    theme: Theme,
) -> None:
    code = 'for f in *.py; do echo "$f" && ruff check --fix "$f" | grep -v passed; done  # all'
    for width in range(30, 60):
        shown = Shown(width, theme)
        shown.answer(f"```sh\n{code}\n```\n")
        screen = pyte.Screen(width, 10)
        pyte.Stream(screen).feed(shown.text.replace("\n", "\r\n"))
        assert code in "".join(screen.display)


ADDRESS = "https://example.com/docs/" + "a-long-way/" * 12 + "?q=1&r=%20#end"
PATH = "/srv/" + "folder_of_some_name/" * 9 + "file.py"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("whole", [ADDRESS, PATH, PATH.removeprefix("/")])
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "See {}.",
        "- in a list {} and on",
        "1. one\n   - two {}",
        "> {}",
        "`{}` is code",
        "**{}**, so",
    ],
)
def test_an_address_or_a_path_is_copied_whole(
    around: str, whole: str, width: int
) -> None:
    shown = Shown(width, Theme())
    shown.answer(around.format(whole))
    # The terminal alone breaks it, which does not count when it is copied.
    assert whole in re.sub(r"\x1b\[[0-9;]*m", "", shown.text)
    screen = pyte.Screen(width, 20)
    pyte.Stream(screen).feed(shown.text.replace("\n", "\r\n"))
    assert whole in "".join(screen.display)
    assert all(row.strip() for row in "\n".join(screen.display).strip().split("\n"))


@pytest.mark.parametrize(
    ("said", "linked"),
    [
        ("See https://a.example/b?c=d#e.", ["https://a.example/b?c=d#e"]),
        (
            "(http://a.example/x_y) or, https://b.example!",
            ["http://a.example/x_y", "https://b.example"],
        ),
        ("javascript:alert(1) file:///etc/passwd data:x ftp://a", []),
        (
            "https://a.example/\u202e\x1b]8;;https://evil.example\x1b\\\\x",
            ["https://a.example/", "https://evil.example"],
        ),
        (
            "[https://good.example](https://evil.example/)",
            ["https://evil.example/"] * 2,
        ),
        ("https://\u0430.example is not what it looks like", []),
    ],
)
def test_an_address_leads_to_what_it_shows(said: str, linked: list[str]) -> None:
    shown = Shown(80, Theme(links=True))
    shown.answer(said)
    found = re.findall(r"\x1b\]8;;([^\x1b]+)\x1b\\", shown.text)
    assert found == linked
    plain = Shown(80, Theme())
    plain.answer(said)
    assert "\x1b]8" not in plain.text
