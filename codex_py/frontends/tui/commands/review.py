"""`/review` lets a reviewer read a change, and `/findings` shows again what it found."""

import asyncio

from codex_py.app.features.reviews import Reviews
from codex_py.app.review.change import change_to_review, names_to_review
from codex_py.app.review.target import review_target
from codex_py.frontends.tui.cells.layout import one_line
from codex_py.frontends.tui.commands.registry import CommandContext, SlashCommand
from codex_py.frontends.tui.composer import Submission
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.panel import Choice
from codex_py.frontends.tui.picker import Picker

_LONGEST_TITLE = 200


async def _review(context: CommandContext, argument: str) -> None:
    if not argument:
        argument = await _chosen(context)
    if not argument:
        return
    target = review_target(argument)
    environment = context.ui.environment
    # Check the target before the turn: a failed turn would be part of the conversation.
    await asyncio.to_thread(change_to_review, target, context.config, environment)
    reviews = (await context.conversation.opened()).feature(Reviews)
    assert reviews is not None
    prompt = reviews.begin(target)
    shown = f"/review {one_line(argument, _LONGEST_TITLE)}"
    context.conversation.send(Submission(prompt, queued=True, shown=shown))


async def _chosen(context: CommandContext) -> str:
    """Ask for the argument; empty if the user cancels, or is about to write it in the composer."""
    options = [
        MenuOption(
            "Current changes", "--uncommitted", "u", "staged, unstaged and untracked"
        ),
        MenuOption("Against a base branch", "--base", "b"),
        MenuOption("A commit", "--commit", "c"),
        MenuOption("In your own words", "words", "w"),
    ]
    question = Choice([("bold", "What is to be reviewed?")], options, cancelled="")
    choice = await context.ui.panels.show(question)
    if choice == "words":
        context.ui.composer.set_text("/review ")
        return ""
    if choice not in {"--base", "--commit"}:
        return choice
    name = await _chosen_name(context, choice)
    if name:
        return f"{choice} {name}"
    return ""


async def _chosen_name(context: CommandContext, option: str) -> str | None:
    """Ask for a branch (`--base`) or a commit (`--commit`); None if the user cancels."""
    names = await asyncio.to_thread(
        names_to_review, option, context.config, context.ui.environment
    )
    rows = [
        MenuOption(one_line(f"{name} {title}", _LONGEST_TITLE), name, note=age)
        for name, age, title in names
    ]
    return await context.ui.panels.show(Picker("Which one?", rows))


REVIEW = [
    SlashCommand(
        "review",
        "have a change reviewed",
        _review,
        argument="[WHAT]",
        while_working=False,
    ),
    SlashCommand(
        "findings",
        "step through what the last review found",
        lambda context, _: context.conversation.show_findings(),
    ),
]
