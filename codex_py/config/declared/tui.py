"""Declares the keys about the terminal. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.declared.kinds import (
    Count,
    KeyName,
)
from codex_py.config.declared.section import Section, key, no_effect, rest, table
from codex_py.config.keymap import action_names

_KeysByAction: TypeAlias = Mapping[str, KeyName | tuple[KeyName, ...]]
_HOW_TO: Final = (
    "one, a list, or `[]` for none; see [the terminal](terminal.md#keys-of-your-own)."
)


def _actions(context: str, when: str) -> Any:
    """Declare the actions of a context, with the description of when they apply."""
    return rest(
        f"The keys of an action ({when}): {_HOW_TO}",
        names=partial(action_names, context),
    )


class GlobalKeys(Section):
    """`[tui.keymap.global]`"""

    leader: KeyName | tuple[KeyName, ...] | None = key(
        "The key that `leader` stands for in the others; Ctrl-X unless it is set."
    )
    actions: _KeysByAction = _actions("global", "anywhere in the prompt")


class ChatKeys(Section):
    """`[tui.keymap.chat]`"""

    actions: _KeysByAction = _actions("chat", "while the agent works")


class ComposerKeys(Section):
    """`[tui.keymap.composer]`"""

    actions: _KeysByAction = _actions("composer", "sending and searching")


class EditorKeys(Section):
    """`[tui.keymap.editor]`"""

    actions: _KeysByAction = _actions("editor", "writing")


class ListKeys(Section):
    """`[tui.keymap.list]`"""

    actions: _KeysByAction = _actions("list", "lists")


class PagerKeys(Section):
    """`[tui.keymap.pager]`"""

    actions: _KeysByAction = _actions("pager", "views that cover the screen")


class ApprovalKeys(Section):
    """`[tui.keymap.approval]`"""

    actions: _KeysByAction = _actions(
        "approval", "questions about what the agent may do"
    )


class AgentsKeys(Section):
    """`[tui.keymap.agents]`"""

    actions: _KeysByAction = _actions("agents", "an agent that is read")


class VimNormalKeys(Section):
    """`[tui.keymap.vim_normal]`"""

    actions: _KeysByAction = _actions("vim_normal", "vi's normal mode")


class VimOperatorKeys(Section):
    """`[tui.keymap.vim_operator]`"""

    actions: _KeysByAction = _actions("vim_operator", "after an operator of vi")


class VimSearchKeys(Section):
    """`[tui.keymap.vim_search]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "No effect.", names=partial(action_names, "vim_search")
    )


class VimTextObjectKeys(Section):
    """`[tui.keymap.vim_text_object]`"""

    actions: _KeysByAction = _actions("vim_text_object", "a text object of vi")


class Keymap(Section):
    """`[tui.keymap]`"""

    global_: GlobalKeys = table(name="global")
    chat: ChatKeys = table()
    composer: ComposerKeys = table()
    editor: EditorKeys = table()
    list: ListKeys = table()
    pager: PagerKeys = table()
    approval: ApprovalKeys = table()
    agents: AgentsKeys = table()
    vim_normal: VimNormalKeys = table()
    vim_operator: VimOperatorKeys = table()
    vim_search: VimSearchKeys = table()
    vim_text_object: VimTextObjectKeys = table()


class Tui(Section):
    """`[tui]`"""

    notifications: bool | tuple[str, ...] | None = key(
        "Tell you when a turn ends or a question waits; true, false, or a list of "
        "kinds."
    )
    notification_method: Literal["auto", "osc9", "osc777", "bel"] | None = key(
        "The way to notify you."
    )
    notification_condition: Literal["unfocused", "always"] | None = key(
        "The condition for notifying you."
    )
    status_line: tuple[str, ...] | None = key("The parts of the status line.")
    terminal_title: tuple[str, ...] | None = key("The parts of the terminal's title.")
    theme: str | None = key(
        "`dark` or `light`, for a terminal that does not report its background."
    )
    model_availability_nux: Mapping[str, Any] = table(
        "Notices about models that Codex has shown you."
    )
    vim_mode_default: bool | None = key("No effect.")
    screen_reader_detection_done: bool | None = key("No effect.")
    animations: bool | None = no_effect(False)
    auto_recap: bool | None = no_effect(False)
    collapse_turn_details: bool | None = no_effect(False)
    fullscreen_transcript: bool | None = no_effect(False)
    raw_output_mode: bool | None = no_effect(False)
    show_server_version_notice: bool | None = no_effect(False)
    show_tooltips: bool | None = no_effect(False)
    copy_on_select_clear_selection: bool | None = no_effect()
    disable_paste_burst: bool | None = no_effect()
    question_esc_back: bool | None = no_effect()
    status_line_use_colors: bool | None = no_effect()
    alternate_screen: Literal["auto", "always", "never"] | None = no_effect(
        "never", "auto"
    )
    copy_on_select: Literal["auto", "always", "never"] | None = no_effect(
        "never", "auto"
    )
    right_click_paste: Literal["auto", "on", "off"] | None = no_effect("off", "auto")
    pet: str | None = no_effect()
    pet_anchor: Literal["composer", "screen-bottom"] | None = no_effect()
    session_picker_view: Literal["comfortable", "dense"] | None = no_effect()
    agents_overview_grouping: Literal["project", "status", "model"] | None = no_effect()
    resume_cwd: Literal["current", "session"] | None = no_effect("current")
    mouse_scroll_speed: Count | None = no_effect()
    sidebar_width_percent: Count | None = no_effect()
    terminal_resize_reflow_max_rows: Count | None = no_effect()
    keymap: Keymap = table()
    effects: Mapping[str, Any] | None = no_effect()
    rendering: Mapping[str, Any] | None = no_effect()
    default_hosts: Mapping[str, Mapping[str, Any]] | None = no_effect()
    presets: Mapping[str, Mapping[str, Any]] | None = no_effect()
