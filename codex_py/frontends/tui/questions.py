"""Asks what the model wants to know: one question after the other, with a way back, and room for an own answer."""

from typing import Final

from codex_py.frontends.terminal import printable
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.panel import Choice, Entry, Option
from codex_py.frontends.tui.panels import Panels
from codex_py.protocol.mcp import Elicitation, ElicitationAnswer, UserQuestion

_ABOUT: Final = "The agent asks"
_HINT: Final = "Enter or a key answers, Left goes back, Esc interrupts; text: your prompt"
_OWN, _BACK, _NEXT, _DISMISSED = "own", "back", "next", "dismissed"
"""What may be picked besides an option, which is its index."""
_MOST_OPTIONS: Final = 50
_LONGEST: Final = 500
"""Characters of an option that are shown."""


async def ask_user(panels: Panels, elicitation: Elicitation) -> ElicitationAnswer:
    """Ask all questions. Esc is the answer `cancel`."""
    questions = elicitation.questions
    answers: dict[str, str] = {}
    at, about = 0, f"{_ABOUT}: {elicitation.message}"
    while at < len(questions):
        question = questions[at]
        before, labels = answers.get(question.id), [label for label, _ in question.options]
        head = _head(elicitation, at, before)
        picked = await _pick(panels, head, question, before, about)
        about = ""
        if picked == _DISMISSED:
            return ElicitationAnswer("cancel")
        if picked == _BACK:
            at = max(0, at - 1)
            continue
        if isinstance(picked, int):
            answers[question.id] = question.options[picked][0]
        elif picked == _OWN:
            own = before if before and before not in labels else ""
            text = await panels.ask(lambda head=head, own=own: Entry(head, text=own), about="")
            if not text:
                continue
            answers[question.id] = text
        at += 1
    return ElicitationAnswer("accept", dict(answers))


async def _pick(
    panels: Panels, head: Fragments, question: UserQuestion, before: str | None, about: str
) -> int | str:
    labels = [label for label, _ in question.options[:_MOST_OPTIONS]]
    options = [
        Option[int | str](printable(label[:_LONGEST]), n, note=printable(note[:_LONGEST]))
        for n, (label, note) in enumerate(question.options[:_MOST_OPTIONS])
    ]
    options.append(Option("Another answer", _OWN, "o", note="write it yourself"))
    own = len(labels) if before is not None else 0
    return await panels.ask(
        lambda: Choice[int | str](
            head,
            options,
            cancelled=_DISMISSED,
            default=labels.index(before) if before in labels else own,
            others={"left": _BACK, **({} if before is None else {"right": _NEXT})},
            waits=not about,
            hint=_HINT,
        ),
        about=about,
    )


def _head(elicitation: Elicitation, at: int, before: str | None) -> Fragments:
    questions = elicitation.questions
    question = questions[at]
    who = "" if elicitation.server == "codex-py" else f"{elicitation.server} asks"
    place = f"{at + 1} of {len(questions)}" if len(questions) > 1 else ""
    parts = [printable(part) for part in (who, question.header[:40], place) if part]
    title: Fragments = [("class:quiet", " - ".join(parts) + "\n")] if parts else []
    answered = f"\nYour answer: {printable(before)}" if before is not None else ""
    return [
        *title,
        ("bold", printable(question.question[: 10 * _LONGEST])),
        ("class:quiet", answered),
    ]
