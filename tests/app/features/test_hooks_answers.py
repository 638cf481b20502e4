"""How answers, matchers and arguments are read. Source: Codex 0.169, measured.

Tests `app/features/hooks/answers.py`.
"""

import json
from typing import Any

import pytest

from codex_py.app.features.hooks.answers import HookAnswer, read_answer
from codex_py.app.features.hooks.runs import HookFailed, filled, matches


def _specific(**fields: Any) -> str:
    return json.dumps({"hookSpecificOutput": fields})


@pytest.mark.parametrize(
    ("event", "ended", "answer"),
    [
        ("PreToolUse", (2, "", " no \n"), HookAnswer(refusal="no")),
        ("PreToolUse", (2, ""), HookAnswer(failure="refused without a reason")),
        (
            "PreToolUse",
            (0, '{"decision":"block","reason":"r"}'),
            HookAnswer(refusal="r"),
        ),
        (
            "PreToolUse",
            (0, _specific(permissionDecision="deny", permissionDecisionReason="r")),
            HookAnswer(refusal="r"),
        ),
        (
            "PreToolUse",
            (0, _specific(permissionDecision="deny")),
            HookAnswer(failure="refused without a reason"),
        ),
        (
            "PreToolUse",
            (0, _specific(permissionDecision="ask")),
            HookAnswer(failure="gave the unsupported `permissionDecision` 'ask'"),
        ),
        ("PreToolUse", (0, _specific(permissionDecision="allow")), HookAnswer()),
        (
            "PreToolUse",
            (0, _specific(permissionDecision="allow", updatedInput={"command": "x"})),
            HookAnswer(updated_input={"command": "x"}),
        ),
        (
            "PreToolUse",
            (0, _specific(updatedInput={"command": "x"})),
            HookAnswer(failure="gave the unsupported `permissionDecision` 'None'"),
        ),
        ("PreToolUse", (0, '{"continue":false}'), HookAnswer()),
        ("PreToolUse", (0, "all is well"), HookAnswer()),
        (
            "PreToolUse",
            (0, '{"a"'),
            HookAnswer(failure="printed something that is not a JSON object"),
        ),
        (
            "PreToolUse",
            (0, '{"systemMessage": "\\ud800"}'),
            HookAnswer(message="\ufffd"),
        ),
        (
            "PreToolUse",
            (0, "[" * 100_000),
            HookAnswer(failure="printed something that is not a JSON object"),
        ),
        (
            "PreToolUse",
            (7, '{"decision":"block","reason":"r"}'),
            HookAnswer(failure="exited with code 7"),
        ),
        ("PreToolUse", (-9, ""), HookAnswer(failure="was killed by signal 9")),
        (
            "PreToolUse",
            (0, '{"hookSpecificOutput":[1],"systemMessage":5}'),
            HookAnswer(),
        ),
        (
            "PostToolUse",
            (0, '{"decision":"block","reason":"r"}'),
            HookAnswer(refusal="r"),
        ),
        (
            "PostToolUse",
            (0, '{"continue":false,"stopReason":"s"}'),
            HookAnswer(stop="s"),
        ),
        ("SessionStart", (0, "text\n"), HookAnswer(context="text")),
        ("SessionStart", (2, "", "no"), HookAnswer(failure="exited with code 2: no")),
        (
            "PreToolUse",
            (127, "", "sh: 1: tool: not found\n"),
            HookAnswer(failure="exited with code 127: sh: 1: tool: not found"),
        ),
        (
            "PreToolUse",
            (1, "", "Traceback:\n  x\nKeyError: 'a'\n\n"),
            HookAnswer(failure="exited with code 1: KeyError: 'a'"),
        ),
        ("PreToolUse", (1, "", " \n"), HookAnswer(failure="exited with code 1")),
        ("SessionStart", (0, '{"decision":"block","reason":"r"}'), HookAnswer()),
        (
            "UserPromptSubmit",
            (0, _specific(additionalContext="c")),
            HookAnswer(context="c"),
        ),
        ("Stop", (0, "text"), HookAnswer()),
        (
            "PermissionRequest",
            (0, _specific(decision={"behavior": "allow"})),
            HookAnswer(is_approved=True),
        ),
        (
            "PermissionRequest",
            (0, _specific(decision={"behavior": "deny", "message": "m"})),
            HookAnswer(refusal="m"),
        ),
    ],
)
def test_an_answer_is_read_as_codex_reads_it(
    event: str, ended: tuple[Any, ...], answer: HookAnswer
) -> None:
    assert read_answer(event, *ended) == answer


def test_a_text_for_the_model_is_bounded() -> None:
    context = read_answer("SessionStart", 0, "x" * 1_000_000).context
    assert context is not None
    assert len(context) < 11_000
    assert "truncated" in context


@pytest.mark.parametrize(
    ("matcher", "names", "expected"),
    [
        (None, ["Bash"], True),
        ("", ["Bash"], True),
        ("*", ["Bash"], True),
        ("Bash", ["Bash"], True),
        ("ash", ["Bash"], False),
        ("bash", ["Bash"], False),
        ("Edit|Bash", ["Bash"], True),
        ("^Ba", ["Bash"], True),
        (".*patch", ["apply_patch", "Edit", "Write"], True),
        ("Write", ["apply_patch", "Edit", "Write"], True),
        ("mcp__ext__.*", ["mcp__ext__echo"], True),
        ("mcp__ext", ["mcp__ext__echo"], False),
    ],
)
def test_a_matcher_is_a_list_of_names_or_a_regular_expression(
    matcher: str | None, names: list[str], expected: bool
) -> None:
    assert matches(matcher, names) is expected


def test_the_fields_of_an_event_are_put_into_the_arguments_of_a_tool() -> None:
    given = {"tool_input": {"path": "/a", "count": 3, "more": {"x": None}}}
    template = {
        "p": "${tool_input.path}",
        "n": "${tool_input.count}",
        "t": ["see ${tool_input.path} ${tool_input.more}"],
    }
    assert filled(template, given) == {"p": "/a", "n": 3, "t": ['see /a {"x":null}']}
    with pytest.raises(HookFailed, match=r"needs `\$\{tool_input\.nope\}`"):
        filled("${tool_input.nope}", given)
