"""The forms of an export, from thread items.

Also tests `app/views/conversation.py`, `app/views/entries.py`, `extensions/export/markdown.py` and
`extensions/export/page.py`.
"""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from codex_py.app.views.conversation import Conversation
from codex_py.app.views.fences import closed, fenced
from codex_py.errors import UsageError
from codex_py.extensions.export.forms import writer_for
from codex_py.protocol import event_items
from codex_py.protocol.stream import Usage

HOSTILE = (
    "</style></pre></details><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\x00\x1b[2J\u202egnp\ud800 [a](javascript:alert(3)) [b](data:text/html,x) ![c](http://x.example/c.png)"
    ' [d](https://x.example/"onclick=alert(4)) <http://x.example/"y>\n```html onclick="x'
)
DIFF = (
    "diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -8,3 +8,3 @@\n a\n-b\n+c </td>\n d\n"
    "diff --git a/g b/g\nnew file mode 100644\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+x\n"
)
ITEMS: list[event_items.ThreadItem] = [
    event_items.UserMessage(id="0", text="Do it."),
    event_items.ReasoningSummary(id="1", text="**Hm**"),
    event_items.TodoList(
        id="2", items=[event_items.TodoEntry(text="step", completed=True)]
    ),
    event_items.CommandExecution(
        id="3",
        command="/bin/bash -lc 'make all'",
        aggregated_output="````\n\x1b[31mred\x1b[0m",
        exit_code=2,
        status="failed",
        duration_ms=1200,
    ),
    event_items.FileChange(id="4", changes=[], status="completed", diff=DIFF),
    event_items.McpToolCall(
        id="5", server="s", tool="t", arguments={"a": 1}, status="completed"
    ),
    event_items.CollabToolCall(
        id="6",
        tool="spawn_agent",
        sender_thread_id="x",
        receiver_thread_ids=["y"],
        prompt="Look.",
    ),
    event_items.WebSearch(id="7", query="words"),
    event_items.ErrorItem(id="8", message="it broke"),
    event_items.ContextCompaction(id="9", status="completed"),
    event_items.AgentMessage(id="10", text="# Done\n\nSee [f](f.py:3)."),
    event_items.TurnTime(id="11", duration_ms=3000),
    event_items.UserMessage(id="12", text="And?"),
    event_items.ErrorItem(id="13", message=event_items.INTERRUPTED, code="aborted"),
]


def written(
    form: str,
    items: list[event_items.ThreadItem],
    *,
    name: str = "<i>n",
    model: str = "m",
) -> str:
    document = Conversation(
        thread_id="id",
        name=name,
        cwd="/r",
        model=model,
        provider="p",
        usage=Usage(),
        items=items,
    )
    return "".join(writer_for(None, form)(document))


class Reader(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "hr"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_markdown_has_all_that_was_said_and_done() -> None:
    assert written("md", ITEMS).partition("## User")[2] == (
        "\n\nDo it.\n\n**Reasoning**\n\n> **Hm**\n\n**Updated plan**\n\n- ✔ step\n\n"
        "`````console\n$ make all\n````\nred\n`````\n\n(exit 2, 1.2s)\n\n"
        f"**Edited f.py, g**\n\n```diff\n{DIFF}```\n\n"
        '**Called s.t**\n\n```json\n{\n  "a": 1\n}\n```\n\n**Started agent y**\n\nLook.\n\n'
        "**Searched the web for words**\n\n**Error**\n\n```\nit broke\n```\n\n"
        "**Compacted: for the model, a summary takes the place of the above**\n\n"
        "## Agent\n\n# Done\n\nSee [f](f.py:3).\n\n**Worked for 3s**\n\n## User\n\nAnd?\n\n"
        "**Conversation interrupted**\n"
    )


def test_a_block_of_code_without_an_end_does_not_take_the_rest_with_it() -> None:
    assert closed("```py\nx\n```\n~~~~\n```") == "```py\nx\n```\n~~~~\n```\n~~~~"
    assert closed("a") == "a"
    assert fenced("`````") == "``````\n`````\n``````"


def test_json_has_the_items_of_the_events_with_all_their_fields() -> None:
    data = json.loads(written("json", ITEMS))
    assert (data["format"], data["format_version"], data["name"]) == (
        "codex-py-conversation",
        1,
        "<i>n",
    )
    assert data["items"][0] == {
        "id": "0",
        "type": "user_message",
        "text": "Do it.",
        "images": [],
    }
    assert data["items"][3]["duration_ms"] == 1200
    assert data["items"][4]["diff"] == DIFF
    assert written("json", [event_items.AgentMessage(id="0", text=HOSTILE)]).isascii()


def test_a_page_is_well_formed_and_loads_nothing() -> None:
    page = Reader(written("html", ITEMS))
    assert page.open == []
    names = [name for name, _ in page.elements]
    for once in ("h1", "main", "header", "footer", "title", "style", "nav"):
        assert names.count(once) == 1
    assert names.count("h2") == 2
    assert not {"script", "img", "link", "iframe", "object", "form", "base"} & set(
        names
    )
    rows = re.findall(
        r'<td class="n">(\d*)</td><td class="n">(\d*)</td><td class="t">(.*?)</td>',
        written("html", ITEMS),
    )
    assert rows == [
        *(
            ("8", "8", "  a"),
            ("9", "", "- b"),
            ("", "9", "+ c &lt;/td&gt;"),
            ("10", "10", "  d"),
        ),
        ("", "1", "+ x"),
    ]
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_hostile_text_is_text() -> None:
    items: list[event_items.ThreadItem] = [
        event_items.UserMessage(id="0", text=HOSTILE, images=[HOSTILE]),
        event_items.AgentMessage(id="1", text=HOSTILE),
        event_items.ReasoningSummary(id="2", text=HOSTILE),
        event_items.CommandExecution(
            id="3", command=HOSTILE, aggregated_output=HOSTILE
        ),
        event_items.FileChange(
            id="4",
            changes=[event_items.Change(path=HOSTILE, kind="add")],
            diff=f"diff --git a/{HOSTILE} b/x\n{HOSTILE}",
            status="completed",
        ),
        event_items.FileChange(
            id="5", changes=[], status="failed", error={"code": "x", "message": HOSTILE}
        ),
        event_items.McpToolCall(
            id="6",
            server=HOSTILE,
            tool=HOSTILE,
            arguments={HOSTILE: HOSTILE},
            result={"content": [{"type": "text", "text": HOSTILE}]},
            error={"message": HOSTILE},
        ),
        event_items.CollabToolCall(
            id="7",
            tool="wait",
            sender_thread_id="x",
            receiver_thread_ids=[HOSTILE],
            prompt=HOSTILE,
            agents_states={HOSTILE: event_items.AgentState("completed", HOSTILE)},
        ),
        event_items.WebSearch(id="8", query=HOSTILE),
        event_items.ErrorItem(id="9", message=HOSTILE),
        event_items.TodoList(
            id="10", items=[event_items.TodoEntry(text=HOSTILE, completed=False)]
        ),
        event_items.UserMessage(id="11", text=HOSTILE),
    ]
    text = written("html", items)
    page = Reader(text)
    assert page.open == []
    assert not {"script", "img"} & {name for name, _ in page.elements}
    for _, attributes in page.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name == "style"
        ]
        href = attributes.get("href") or "#"
        assert href.startswith(("#prompt-", "https://", "http://")) or href == "#"
    for form in ("html", "md"):
        shown = written(form, items, name=HOSTILE, model=HOSTILE)
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800-\udfff]", shown)


def test_people_get_the_two_ends_of_a_long_output_and_programs_all_of_it() -> None:
    output = f"first{'x' * 30_000}last"
    items: list[event_items.ThreadItem] = [
        event_items.CommandExecution(
            id="0", command="c", aggregated_output=output, exit_code=0
        )
    ]
    for form in ("md", "html"):
        short = written(form, items)
        assert "10,009 characters are left out" in short
        assert "first" in short
        assert "last" in short
        assert len(short) < 30_000
    assert output in written("json", items)


def test_a_suffix_that_names_no_form_is_a_mistake() -> None:
    assert writer_for(Path("a.HTML")) is writer_for(None, "html")
    assert writer_for(None) is writer_for(Path("a.markdown")) is writer_for(Path("a"))
    with pytest.raises(UsageError, match=r"\.md, \.json, \.html, not a\.pdf"):
        writer_for(Path("a.pdf"))
