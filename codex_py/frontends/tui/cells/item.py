"""Cells of items and of the program's messages. Commands and patches have modules of their own."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.styled import Styled
from rich.text import Text

from codex_py.app.views.call_text import one_line_json, question_answers, was_asked
from codex_py.app.views.diffs import read_diff
from codex_py.app.views.item_words import (
    STEP_MARKS,
    ItemWords,
    Kind,
    item_words,
    prompt_text,
    worked_for,
)
from codex_py.frontends.tui.blocks import Block
from codex_py.frontends.tui.cells.command import command_cell, running_cell
from codex_py.frontends.tui.cells.layout import (
    WHOLE,
    Band,
    Bounded,
    Hanging,
    below,
    folded,
    marked,
    one_line,
    within,
)
from codex_py.frontends.tui.cells.markup import heading_of
from codex_py.frontends.tui.cells.patch import change_cell, changing_cell
from codex_py.frontends.tui.markdown import Code, Markdown
from codex_py.frontends.tui.menu import window
from codex_py.frontends.tui.theme import Theme
from codex_py.protocol import event_items
from codex_py.streams.plain_text import cut
from codex_py.streams.times import duration

_LONGEST_TITLE = 300
_LONGEST_ARGUMENTS = 300
_LONGEST_NAME = 100
_MOST_STEPS = 50
_MOST_PARTS = 20
"""Entries of a JSON list or object that are shown."""
_PROMPT_HEAD = 30
_PROMPT_TAIL = 10
"""Lines. The ends of a prompt that holds a whole log are enough to recognize it."""
_RESULT_HEAD = 3
_MOST_THOUGHT = 8_000
_NOTE_HEAD = 40
_NOTE_TAIL = 10
_LONGEST_NOTE = 2000
"""Characters of a line, enough for a sentence whose end says what to do."""
_MOST_COUNTED = 1_000_000
"""Characters of a diff; a longer one is not counted."""
_BESIDE_STEP = 6
"""Columns of a plan's row that are not the step's text."""
_STEP_STYLES = {
    "completed": ("ok", "step done"),
    "in_progress": ("step", "step"),
    "pending": ("quiet", "quiet"),
}
"""The styles of a step's mark and of its text, by its status."""
_NOT_LIVE: Collection[Kind] = (
    "user",
    "agent",
    "thought",
    "plan",
    "question",
    "search",
    "error",
    "note",
    "time",
)
"""The kinds of items that are shown elsewhere while they run, or that end when they start."""
_NOTE_SIGNS = {"text": "•", "warning": "⚠", "error": "■"}


def item_cell(item: event_items.ThreadItem, theme: Theme) -> RenderableType | None:
    """The cell of a finished item; None for an answer, which is shown block by block."""
    cell = _item_cell(item, theme)
    is_call = isinstance(
        item,
        event_items.CommandExecution
        | event_items.FileChange
        | event_items.McpToolCall
        | event_items.CollabToolCall,
    )
    if cell is not None and is_call and theme.folds:
        return Bounded(cell)
    return cell


def _item_cell(item: event_items.ThreadItem, theme: Theme) -> RenderableType | None:
    words = item_words(item)
    match item:
        case event_items.UserMessage():
            return user_cell(item.text, item.images, folds=theme.folds)
        case event_items.ReasoningSummary():
            return thought_cell(item.text, 0)
        case event_items.CommandExecution():
            return command_cell(item, theme)
        case event_items.FileChange():
            return change_cell(item, theme)
        case event_items.TodoList():
            return _plan_cell(item)
        case event_items.McpToolCall(tool="request_user_input"):
            return _questions_cell(item, words)
        case event_items.CollabToolCall():
            return _agents_cell(item, words, theme)
        case event_items.ErrorItem():
            has_ended_turn = item.code is not None and item.tool is None
            return note_cell(item.message, "error" if has_ended_turn else "warning")
        case event_items.ContextCompaction():
            return _compaction_cell(words, is_over=True)
        case event_items.TurnTime(duration_ms=duration_ms):
            return worked_cell(duration_ms)
        case event_items.AgentMessage():
            return None
        case _:
            return _line_cell(words, theme)


def live_cell(
    item: event_items.ThreadItem,
    output: str,
    elapsed_s: float,
    theme: Theme,
    *,
    tail: int,
) -> RenderableType | None:
    """The cell of a running item, with the last `tail` lines of its output.

    None if the item is shown elsewhere.
    """
    words = item_words(item, is_done=False)
    match item:
        case event_items.CommandExecution():
            return running_cell(item, output, elapsed_s, theme, tail=tail)
        case event_items.FileChange():
            return changing_cell(item, theme)
        case event_items.ContextCompaction():
            return _compaction_cell(words, is_over=False)
        case _:
            pass
    if words.kind in _NOT_LIVE:
        return None
    parts: list[RenderableType] = [_line(words, theme)]
    if output and tail:
        parts.append(below(Text(one_line(output, 200), "quiet")))
    return marked(*parts, style="accent")


def _plan_cell(
    item: event_items.TodoList, head: Text | None = None, *, longest: int = 500
) -> RenderableType:
    """The cell of a plan. `longest`: the characters of a step to show."""
    parts: list[RenderableType] = []
    if item.explanation:
        parts.append(
            folded(
                item.explanation,
                head=10,
                tail=2,
                style="thought",
            )
        )
    parts += [_step_row(step, longest) for step in item.items[:_MOST_STEPS]]
    hidden = len(item.items) - _MOST_STEPS
    if hidden > 0:
        parts.append(Text(f"… +{hidden} steps", "quiet"))
    if parts:
        body = below(*parts)
    else:
        body = Text("(no steps)", "quiet")
    return marked(head or Text("Updated Plan", "action"), body, style="plan")


def _step_row(step: event_items.TodoEntry, longest: int) -> Hanging:
    mark_style, text_style = _STEP_STYLES[step.status]
    text = Text(one_line(step.text, longest), text_style)
    return Hanging(f"{STEP_MARKS[step.status]} ", text, style=mark_style)


def pinned_plan_cell(
    item: event_items.TodoList, width: int, most: int
) -> RenderableType:
    """The plan in progress: at most `most` steps, around the first that is not done."""
    steps = item.items
    undone = [n for n, step in enumerate(steps) if not step.completed]
    done = len(steps) - len(undone)
    # If all are done, the last ones are shown.
    current = undone[0] if undone else len(steps)
    shown = [steps[n] for n in window(current, len(steps), most)]
    progress = f" · {done} of {len(steps)} done"
    hidden = len(steps) - len(shown)
    if hidden:
        progress += f" · +{hidden} steps"
    head = Text.assemble(("Plan", "action"), (progress, "quiet"))
    shortened = replace(item, items=shown, explanation=None)
    return _plan_cell(shortened, head, longest=width - _BESIDE_STEP)


def _line_cell(words: ItemWords, theme: Theme) -> RenderableType:
    """The cell of an item that is a line, with its result or its error below."""
    row = _line(words, theme)
    match words.kind:
        case "search":
            return marked(row)
        case "goal":
            # Its result says the same again.
            return marked(row, style="ok")
        case _:
            pass
    parts: list[RenderableType] = [row]
    for passage in words.body[-1:]:
        if passage.form == "error":
            shown = folded(passage.text, head=8, tail=2, style="error")
            parts.append(below(shown))
        else:
            parts.append(_result(passage.text, theme))
    return marked(*parts, style="ok" if words.failed is None else "error")


def _line(words: ItemWords, theme: Theme) -> Text:
    """The verb of an item, its title, and the arguments that are not in its title."""
    longest = _LONGEST_TITLE
    style = ""
    title = words.title
    match words.kind:
        case "call":
            longest = _LONGEST_NAME
            style = "accent"
        case "agents":
            style = "accent"
        case "image":
            title = within(theme.cwd, title)
        case _:
            pass
    shown = (one_line(title, longest), style)
    line = Text.assemble((f"{words.verb} ", "action"), shown)
    if words.arguments is not None:
        arguments = ""
        if words.arguments:
            arguments = one_line(one_line_json(words.arguments), _LONGEST_ARGUMENTS)
        line.append(f"({arguments})", "quiet")
    return line


def _agents_cell(
    item: event_items.CollabToolCall, words: ItemWords, theme: Theme
) -> RenderableType:
    parts: list[RenderableType] = [_line(words, theme)]
    for passage in words.body[:_MOST_PARTS]:
        if not passage.label:
            parts.append(_result(passage.text, theme))
        elif item.tool == "wait":
            said = ": ".join(filter(None, (passage.label, passage.text)))
            parts.append(_result(said, theme))
    return marked(*parts, style="ok" if words.failed is None else "error")


def _result(text: str, theme: Theme) -> Hanging:
    head = _RESULT_HEAD if theme.folds else WHOLE
    return below(folded(text, head=head, tail=2))


def _questions_cell(item: event_items.McpToolCall, words: ItemWords) -> RenderableType:
    """The questions of `request_user_input` with their answers, or why they were not asked."""
    if not was_asked(item):
        asked = one_line(words.title, _LONGEST_TITLE)
        row = Text.assemble((f"{words.verb} ", "action"), asked)
        why = one_line(words.body[0].text, _LONGEST_TITLE)
        row.append(f" · {why}", "quiet")
        return marked(row, sign="✗", style="error")
    rows: list[RenderableType] = []
    for question, answer in question_answers(item):
        rows.append(Text(one_line(question, _LONGEST_TITLE), "quiet"))
        said = one_line(answer, _LONGEST_TITLE)
        rows.append(Hanging("  ", Text(said or "no answer")))
    return marked(Text(words.verb, "action"), below(*rows), style="accent")


def _compaction_cell(words: ItemWords, *, is_over: bool) -> RenderableType:
    if words.failed is not None:
        text = Text(words.line, "warning")
        return marked(text, sign="⚠", style="warning")
    return marked(Text(words.line, "quiet" if is_over else "action"))


def user_cell(
    text: str, images: Sequence[str] = (), *, folds: bool = True
) -> RenderableType:
    """The cell of a prompt, with the paths of its images."""
    shown = prompt_text(text, images)
    head = _PROMPT_HEAD if folds else WHOLE
    body = folded(shown, head=head, tail=_PROMPT_TAIL, style="user")
    return Band(marked(body, sign="\u203a", style="accent"), "user")


def steered_cell(
    text: str, images: Sequence[str] = (), *, folds: bool = True
) -> RenderableType:
    """The cell of a prompt that was sent into a running turn."""
    head = Hanging("  ", Text("Sent into the turn, after a step:", "quiet"))
    return Group(head, user_cell(text, images, folds=folds))


def block_cell(block: Block, *, is_start: bool) -> RenderableType:
    """The cell of a block of an answer. `is_start`: the block gets the answer's mark."""
    if block.is_plan:
        return _plan_block_cell(block)
    sign = "• " if is_start else "  "
    if block.language is not None:
        return Code(block.text, block.language, sign=sign, joins=True)
    return Hanging(sign, Markdown(block.text), style="quiet")


def _plan_block_cell(block: Block) -> RenderableType:
    """The cell of a block of a proposed plan: beside a bar, which begins a row before."""
    if block.language is None:
        body = Markdown(block.text)
    else:
        body = Code(block.text, block.language)
    cell = Hanging("│ ", body, rest="│ ", style="plan")
    if block.is_first:
        return Group(Text("│", "plan"), cell)
    return cell


def reasoning_cell(text: str) -> RenderableType:
    """The cell of a thought, while the model is writing it."""
    shown = Markdown(cut(text.strip(), _MOST_THOUGHT))
    return marked(Styled(shown, "thought"))


def thought_cell(text: str, seconds: int) -> RenderableType:
    """A finished thought: its duration and its heading."""
    shown = "  Thought"
    if seconds:
        shown += f" for {duration(seconds)}"
    heading = one_line(heading_of(text), 200)
    if heading:
        shown += f" · {heading}"
    return Text(shown, "thought")


def greeting_cell(text: str, hint: str) -> RenderableType:
    """The greeting, with the key hints of the status line and more: there is more room here."""
    how = hint.replace("files, ", "files, ! your own shell, ")
    return Hanging("  ", Text(f"{one_line(text, 200)}\n{how}", "quiet"))


def note_cell(text: str, style: str = "text") -> RenderableType:
    """A message of the program: a notice (style `text`), a `warning` or an `error`."""
    if style == "text":
        head = 4 * _NOTE_HEAD
        sign_style = "quiet"
    else:
        head = _NOTE_HEAD
        sign_style = style
    body = folded(
        text,
        head=head,
        tail=_NOTE_TAIL,
        style=style,
        longest=_LONGEST_NOTE,
    )
    return marked(body, sign=_NOTE_SIGNS[style], style=sign_style)


def denied_cell(tool: str, reason: str) -> RenderableType:
    """A call that was not allowed to run. `reason`: the text that the model gets."""
    name = one_line(tool, _LONGEST_NAME)
    head = Text.assemble((f"{name} ", "action"), "was not allowed")
    why = below(folded(reason, head=3, tail=1))
    return marked(head, why, sign="✗", style="error")


def reason_cell(reason: str) -> RenderableType:
    """The reason why a call was not allowed to run, below the cell of the call."""
    why = folded(reason, head=3, tail=1)
    return Hanging("  ", below(why))


def worked_cell(
    milliseconds: int, remark: str = "", diff: str = "", now: str = ""
) -> RenderableType:
    """The duration of a turn, its changes, and the time of its end."""
    parts = [worked_for(milliseconds), remark, counted(diff), now]
    return Hanging("  ", Text(" · ".join(filter(None, parts)), "quiet"))


def counted(diff: str) -> str:
    """The files and lines of a diff, as `1 file +8 -3`; empty without a diff.

    It is also empty for a diff that is too long.
    """
    if not diff or len(diff) > _MOST_COUNTED:
        return ""
    files = read_diff(diff)
    signs = Counter(line.sign for file in files for line in file.lines)
    if len(files) == 1:
        count = "1 file"
    else:
        count = f"{len(files)} files"
    return f"{count} +{signs['+']} \u2212{signs['-']}"
