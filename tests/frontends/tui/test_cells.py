"""Every kind of cell at several widths, in files: see `tests/support/snapshots.py`.

Tests `frontends/tui/cells/command.py`, `frontends/tui/cells/item.py`,
`frontends/tui/cells/layout.py`, `frontends/tui/cells/markup.py`, `frontends/tui/cells/patch.py`,
`frontends/tui/highlighting.py` and `app/views/command_script.py`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from codex_py.frontends.tui.cells.command import script_of
from codex_py.frontends.tui.cells.item import steered_cell, user_cell, worked_cell
from codex_py.frontends.tui.cells.layout import WHOLE, output
from codex_py.frontends.tui.theme import Theme
from codex_py.process.output import HeadTailBuffer
from codex_py.protocol.event_items import (
    Change,
    CommandExecution,
    ContextCompaction,
    ErrorItem,
    FileChange,
    McpToolCall,
    ReasoningSummary,
    TodoEntry,
    TodoList,
    UserMessage,
    WebSearch,
)
from codex_py.protocol.events import (
    CallDenied,
    ErrorInfo,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from codex_py.protocol.stream import Usage
from tests.frontends.tui.shown import LOOKS, Shown
from tests.support.snapshots import check_snapshot

SNAPSHOTS = Path(__file__).parent / "snapshots"

DIFF = """\
diff --git a/app/loader.py b/app/loader.py
index 257cc56..5716ca5 100644
--- a/app/loader.py
+++ b/app/loader.py
@@ -8,4 +8,5 @@ def load():
 def load(path):
-    return read(path)
+    with open(path) as file:  # a comment that is long enough to need a second row where it is narrow
+        return read(file)
 #
 \tprint("tab")
@@ -120,2 +121,2 @@ def main():
-    load()
+    load(sys.argv[1])
 end
\\ No newline at end of file
"""
MANY_FILES = """\
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1,2 @@
+one
+two
diff --git a/old name.py b/new name.py
similarity index 100%
rename from old name.py
rename to new name.py
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/logo.png b/logo.png
Binary files a/logo.png and b/logo.png differ
"""
ANSWER = """\
# The loader

It reads `config.toml` from the **home folder**, then from *each* folder down to the working directory; \
~~not~~ see [the manual](https://example.com/manual#layers) or <https://example.com>.
A line of its own, with <b>HTML</b> and `Vec<T>`, a&nbsp;blank and 漢字.

## Steps

1. Collect
   ```python
   def collect(folder: Path) -> list[Layer]:
       return [read(p) for p in folder.parents]  # nearest last
   ```
2. Check:
   - names
   - types
10. Merge

| key | type | default |
|-----|:----:|--------:|
| `model` | string | `gpt-5.5` |
| `timeout_ms` | integer, in milliseconds, of which there are a thousand in a second | 10000 |

> A file that cannot be read
> is an error.

```sh
$ codex-py exec 'a command line that is quite a lot longer than a narrow terminal is wide, as they often are'
```

---

![a picture](diagram.png)
"""


def prompts(shown: Shown) -> None:
    shown.transcript.print(
        user_cell("Change the loader, so that it reads each folder.\n\nAnd be quick.")
    )
    shown.complete(
        UserMessage(id="1", text="Look at this:", images=["/tmp/screen.png"])
    )
    shown.transcript.print(
        user_cell("\n".join(f"line {n} of a log" for n in range(200)))
    )


def answer(shown: Shown) -> None:
    shown.answer(ANSWER)


def reasoning(shown: Shown) -> None:
    text = "**Looking at the loader**\n\nFirst I want to read `loader.py`, then what its tests say."
    shown.complete(ReasoningSummary(id="1", text=text))


def command(script: str, **facts: object) -> CommandExecution:
    settled = {
        "id": "1",
        "status": "completed",
        "exit_code": 0,
        "duration_ms": 1240,
        **facts,
    }
    return CommandExecution(command=f"/bin/bash -lc '{script}'", **settled)  # pyright: ignore[reportArgumentType]


def commands(shown: Shown) -> None:
    output = "\n".join(f"line {n} \x1b[32mgreen\x1b[0m" for n in range(1, 41))
    shown.complete(
        command("true", duration_ms=3),
        command("make test", aggregated_output=output, duration_ms=125_000),
        command("make test", aggregated_output=output, exit_code=2, status="failed"),
        command("curl x", aggregated_output="10%\r50%\r100%\r\ndone\tall\n"),
        command(
            "python - <<EOF\nimport os\nfor n in range(3):\n    print(n)\n\nx\ny\nEOF"
        ),
        command("sleep 60", exit_code=None, status="failed", duration_ms=None),
    )


def explored(shown: Shown) -> None:
    shown.tell(TurnStarted())
    shown.complete(
        command("cat app/loader.py", aggregated_output="text"),
        command("cd app && rg -n load . | head -20", aggregated_output="text"),
        command("ls", aggregated_output="app"),
        command("sed -n 1,20p setup.py; git status", aggregated_output="text"),
        command("find . -delete"),
        command("sed -n 1w/tmp/x setup.py"),
        command(
            "cat missing",
            aggregated_output="no such file",
            exit_code=1,
            status="failed",
        ),
    )


def declined(shown: Shown) -> None:
    shown.complete(
        command("rm -rf build", status="declined", exit_code=None, duration_ms=None)
    )
    shown.tell(CallDenied("exec_command", "rejected by the user"))
    shown.tell(CallDenied("write_stdin", "the policy forbids it"))


def patches(shown: Shown) -> None:
    change = Change(path="/repo/app/loader.py", kind="update")
    changes = [change]
    refused = {"code": "ApprovalDenied", "message": "patch rejected by user"}
    new = "".join(f"+line {n}\n" for n in range(1, 101))
    added = f"diff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1,100 @@\n{new}"
    shown.complete(
        FileChange(id="1", changes=changes, status="completed", diff=DIFF),
        FileChange(id="2", changes=changes, status="completed", diff=MANY_FILES),
        FileChange(id="3", changes=changes, status="completed", diff=added),
        FileChange(id="4", changes=changes, status="completed"),
        FileChange(id="5", changes=changes, status="failed", diff=DIFF),
        FileChange(id="6", changes=changes, status="failed", error=refused),
    )


def plan(shown: Shown) -> None:
    items = [
        TodoEntry(text="Read the loader", completed=True),
        TodoEntry(
            text="Change it, so that it reads every folder from the home folder to the working directory",
            completed=False,
            in_progress=True,
        ),
        TodoEntry(text="Run the tests", completed=False),
    ]
    plan = TodoList(id="1", items=items, explanation="The tests come last.")
    shown.complete(plan, TodoList(id="2", items=[]))


def calls(shown: Shown) -> None:
    lines = "\n".join(f"result {n}" for n in range(20))
    content = [{"type": "text", "text": lines}, {"type": "image", "data": "…"}]
    shown.complete(
        McpToolCall(
            id="1",
            server="docs",
            tool="search",
            arguments={"query": "layers of a configuration", "limit": 20},
            result={"content": content},
            status="completed",
        ),
        McpToolCall(
            id="2",
            server="docs",
            tool="fetch",
            arguments={},
            error={"message": "no such page"},
            status="failed",
        ),
        WebSearch(id="3", query="toml specification"),
        WebSearch(
            id="4", query="", action={"type": "open_page", "url": "https://toml.io"}
        ),
    )


def notices(shown: Shown) -> None:
    shown.transcript.notice("Model: gpt-5.5\nEffort: high")
    shown.complete(
        ErrorItem(
            id="1",
            message="`model_colour` is no key of the configuration, and was ignored.",
        ),
        ContextCompaction(id="2", status="completed"),
        ContextCompaction(id="3", status="failed"),
    )
    shown.tell(TurnStarted())
    shown.time_s += 125
    shown.tell(TurnCompleted(Usage()))
    shown.tell(TurnFailed(ErrorInfo("the turn was interrupted", "aborted")))
    shown.tell(TurnFailed(ErrorInfo("stream disconnected before completion", "stream")))


@pytest.mark.parametrize(
    "show",
    [
        prompts,
        answer,
        reasoning,
        commands,
        explored,
        declined,
        patches,
        plan,
        calls,
        notices,
    ],
)
def test_cells_look_as_they_did(show: Callable[[Shown], None]) -> None:
    parts: list[str] = []
    for name, (width, theme) in LOOKS.items():
        shown = Shown(width, theme)
        show(shown)
        parts.append(f"=== {name}\n{shown.text}\n")
    check_snapshot(SNAPSHOTS / f"{show.__name__}.txt", "".join(parts))


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("/bin/bash -lc 'ls -l'", "ls -l"),
        ("/usr/bin/bash -lc ls", "ls"),
        ("/opt/own/zsh -c ls", "ls"),
        ('/bin/zsh -c "it\'s \\"here\\""', 'it\'s "here"'),
        ("/bin/bash -lc 'a '\"'\"' b'", "a ' b"),
        ("/bin/bash -lc 'echo $1' sh x", "/bin/bash -lc 'echo $1' sh x"),
        ("/bin/bash -lc 'open", "/bin/bash -lc 'open"),
        *(
            (f"{shell} -lc 'git status'", f"{shell} -lc 'git status'")
            for shell in (
                "bash",
                "./bash",
                "/repo/bash",
                "/bin/../repo/sh",
                "'/bin/bash",
                "/bin/cat",
            )
        ),
        ("git status", "git status"),
    ],
)
def test_the_shell_is_no_part_of_the_command(command: str, script: str) -> None:
    assert script_of(command, "/opt/own/zsh") == script


def test_a_command_says_where_it_runs_unless_it_is_in_the_sessions_folder() -> None:
    shown = Shown(theme=Theme(dumb=True, color=False, cwd="/repo"))
    for cwd in ("/repo", ".", "/repo/sub", "sub"):
        item = CommandExecution(
            id=cwd, command="/bin/bash -lc 'make all'", cwd=cwd, status="completed"
        )
        shown.complete(item)
    here, there = "• Ran make all", "• Ran make all in /repo/sub"
    assert [line for line in shown.lines if line] == [here, here, there, there]


def test_a_command_of_the_users_shows_what_it_prints_also_if_it_only_reads() -> None:
    shown = Shown()
    item = CommandExecution(
        id="1",
        command="ls",
        status="completed",
        exit_code=0,
        is_users=True,
        aggregated_output="\n".join(map(str, range(20))),
    )
    shown.complete(item)
    rows = ["0", "1", "… +8 lines (Ctrl-T)", *map(str, range(10, 20))]
    assert [line.strip(" └") for line in shown.lines] == ["• You ran ls", *rows]


def test_a_file_outside_of_the_folder_keeps_its_first_slash() -> None:
    shown = Shown()
    diff = "diff --git a/opt/x b/opt/x\nnew file mode 100644\n--- /dev/null\n+++ b/opt/x\n@@ -0,0 +1 @@\n+1\n"
    change = Change(path="/opt/x", kind="add")
    shown.complete(FileChange(id="1", changes=[change], status="completed", diff=diff))
    assert shown.lines == ["• Added /opt/x (+1 -0)", "  1 +1"]


def diff_of(**files: str) -> str:
    """Each file with lines of one sign each."""
    return "".join(
        f"diff --git a/{name}.txt b/{name}.txt\n--- a/{name}.txt\n+++ b/{name}.txt\n"
        f"@@ -1,{len(signs.replace('+', ''))} +1,{len(signs.replace('-', ''))} @@\n"
        + "".join(f"{sign}{n}\n" for n, sign in enumerate(signs))
        for name, signs in files.items()
    )


@pytest.mark.parametrize(
    ("files", "marks"),
    [
        ({"a": "  -+  ", "b": "-+", "c": "+++"}, []),
        ({"a": "+" * 60, "b": "-+", "c": " + "}, ["… +52 lines (Ctrl-T)"]),
        ({"a": "+" * 60, "b": "+" * 60}, ["… +53 lines (Ctrl-T)"] * 2),
        ({"a": "+" * 60}, ["… +43 lines (Ctrl-T)"]),
    ],
)
def test_small_files_of_a_patch_leave_their_rows_to_the_others(
    files: dict[str, str], marks: list[str]
) -> None:
    shown = Shown()
    shown.complete(
        FileChange(id="1", changes=[], status="completed", diff=diff_of(**files))
    )
    assert [line.strip() for line in shown.lines if "…" in line] == marks
    assert len(shown.lines) <= 20


def test_a_folded_patch_shows_its_change() -> None:
    shown = Shown()
    diff = diff_of(**dict.fromkeys("abcd", "   -+" + " " * 30))
    shown.complete(FileChange(id="1", changes=[], status="completed", diff=diff))
    assert sum(line.endswith(" -3") for line in shown.lines) == 4


def test_a_failed_patch_and_a_picture_are_named_within_the_folder() -> None:
    shown = Shown(theme=Theme(dumb=True, color=False, cwd="/repo"))
    error = {"code": "PatchFailed", "message": "no such line"}
    changes = [Change(path=path, kind="update") for path in ("/repo/src/f", "/etc/g")]
    shown.complete(FileChange(id="1", changes=changes, status="failed", error=error))
    arguments = {"path": "/repo/pic.png"}
    shown.complete(
        McpToolCall(id="2", server="codex", tool="view_image", arguments=arguments)
    )
    assert shown.lines == [
        "✗ Failed to patch src/f, /etc/g",
        "  └ no such line",
        "",
        "• Looked at pic.png",
    ]


def test_a_warning_is_shown_to_the_end_of_its_sentence() -> None:
    shown = Shown()
    shown.transcript.notice(f"It failed: {'why, ' * 100}so do this.", "warning")
    assert shown.lines[-1].endswith("so do this.")


def test_the_end_of_a_command_stands_behind_it_and_narrows_no_other_row() -> None:
    shown = Shown(60)
    words = " ".join(f"word{n}" for n in range(15))
    shown.complete(command(f"echo {words}", exit_code=128, status="failed"))
    first, *_, last = [line for line in shown.lines if "word" in line]
    assert len(first) > 50
    assert last.endswith("exit 128 · 1.2s")
    assert last.split()[0].startswith("word")


def test_the_calls_of_a_goal_are_shown_in_words() -> None:
    shown = Shown()

    def called(
        tool: str, told: str, *, fails: bool = False, **arguments: str
    ) -> McpToolCall:
        result = {"content": [{"type": "text", "text": told}]}
        return McpToolCall(
            id="1",
            server="python",
            tool=tool,
            arguments=arguments,
            result=result,
            status="failed" if fails else "completed",
        )

    shown.complete(
        called("create_goal", '{"goal": {}}', objective="make\nit"),
        called(
            "create_goal", "there is an unfinished goal", fails=True, objective="more"
        ),
        called("update_goal", '{"goal": {}}', status="complete"),
    )
    assert [line for line in shown.lines if line] == [
        "\u2022 Set goal: make it",
        '\u2022 Called python.create_goal({"objective": "more"})',
        "  \u2514 there is an unfinished goal",
        "\u2022 The goal is now complete",
    ]


def test_the_fold_counts_what_was_not_kept() -> None:
    buffer = HeadTailBuffer()
    buffer.append("".join(f"{n}\n" for n in range(1, 200_001)).encode())
    rows = output(buffer.text(), head=2, tail=3).plain.split("\n")
    mark = rows.pop(2)
    assert rows == ["1", "2", "199998", "199999", "200000"]
    lost = 200_000 - sum(line.isdigit() for line in buffer.text().split("\n"))
    hidden, _, of_them = mark.partition(" lines, ")
    assert hidden == "… +199995"
    # The two lines that were cut may be in either number.
    assert abs(int(of_them.split()[0]) - lost) <= 2
    whole = output(buffer.text(), head=WHOLE, tail=3).plain
    assert " were not kept" in whole


def test_a_fold_of_what_is_kept_whole_says_nothing_of_it() -> None:
    for count in (100, 20_000, 30_000, 200_001):
        mark = output("xy\n" * count, head=2, tail=3).plain.split("\n")[2]
        assert mark == f"… +{count - 5} lines (Ctrl-T)"


def test_the_rows_of_a_remark_begin_below_each_other() -> None:
    shown = Shown(20, Theme(color=False))
    shown.transcript.print(worked_cell(40_000, now="12:54"))
    shown.transcript.print(worked_cell(40_000, "stopped", DIFF, now="12:54"))
    shown.transcript.print(steered_cell("Go on."))
    rows = [row for row in shown.text.split("\n") if row.strip() and "Go on" not in row]
    assert len(rows) > 4
    assert all(row.startswith("  ") for row in rows)
