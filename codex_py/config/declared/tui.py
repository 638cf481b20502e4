"""Declares the keys about the terminal. LIGHT."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from codex_py.config.declared.kinds import (
    Count,
    KeyName,
)
from codex_py.config.declared.section import Section, key, no_effect, rest, table
from codex_py.config.keymap import action_names


class GlobalKeys(Section):
    """`[tui.keymap.global]`"""

    leader: KeyName | tuple[KeyName, ...] | None = key(
        "The key that `leader` stands for in the others; Ctrl-X unless it is set."
    )
    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (anywhere in the prompt): one, a list, or `[]` for "
        "none; see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "global"),
    )


class ChatKeys(Section):
    """`[tui.keymap.chat]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (while the agent works): one, a list, or `[]` for "
        "none; see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "chat"),
    )


class ComposerKeys(Section):
    """`[tui.keymap.composer]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (sending and searching): one, a list, or `[]` for "
        "none; see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "composer"),
    )


class EditorKeys(Section):
    """`[tui.keymap.editor]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (writing): one, a list, or `[]` for none; see [the "
        "terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "editor"),
    )


class ListKeys(Section):
    """`[tui.keymap.list]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (lists): one, a list, or `[]` for none; see [the "
        "terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "list"),
    )


class PagerKeys(Section):
    """`[tui.keymap.pager]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (what covers the screen): one, a list, or `[]` for "
        "none; see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "pager"),
    )


class ApprovalKeys(Section):
    """`[tui.keymap.approval]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (questions about what the agent may do): one, a list, "
        "or `[]` for none; see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "approval"),
    )


class AgentsKeys(Section):
    """`[tui.keymap.agents]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (an agent that is read): one, a list, or `[]` for "
        "none; see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "agents"),
    )


class VimNormalKeys(Section):
    """`[tui.keymap.vim_normal]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (vi's normal mode): one, a list, or `[]` for none; see"
        " [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "vim_normal"),
    )


class VimOperatorKeys(Section):
    """`[tui.keymap.vim_operator]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (behind an operator of vi): one, a list, or `[]` for "
        "none; see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "vim_operator"),
    )


class VimSearchKeys(Section):
    """`[tui.keymap.vim_search]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "No effect.", names=partial(action_names, "vim_search")
    )


class VimTextObjectKeys(Section):
    """`[tui.keymap.vim_text_object]`"""

    actions: Mapping[str, KeyName | tuple[KeyName, ...]] = rest(
        "The keys of an action (a text object of vi): one, a list, or `[]` for none; "
        "see [the terminal](terminal.md#keys-of-your-own).",
        names=partial(action_names, "vim_text_object"),
    )


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
        "How you are told."
    )
    notification_condition: Literal["unfocused", "always"] | None = key(
        "When you are told."
    )
    status_line: tuple[str, ...] | None = key("The parts of the status line.")
    terminal_title: tuple[str, ...] | None = key("The parts of the terminal's title.")
    theme: str | None = key(
        "`dark` or `light`, for a terminal that does not tell its background."
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
