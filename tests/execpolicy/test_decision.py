import pytest

from codex_py.execpolicy.decision import (
    CommandRules,
    Decision,
    MatchedRule,
    PrefixRule,
    RuleMatch,
)

ALLOW, PROMPT, FORBIDDEN = Decision
RULES = CommandRules(
    (
        PrefixRule((("touch",),)),
        PrefixRule((("git",), ("status", "log"))),
        PrefixRule((("git",), ("push",)), PROMPT, "it leaves the machine"),
        PrefixRule(
            (("git",), ("push",), ("--force", "-f")), FORBIDDEN, "it loses commits"
        ),
        PrefixRule((("make",),)),
    ),
    {"make": ("/opt/make/bin/make",)},
)


def lc(script: str) -> list[str]:
    return ["/bin/bash", "-lc", script]


def decision(argv: list[str], *, resolve_paths: bool = True) -> Decision | None:
    match = RULES.decide(argv, resolve_paths=resolve_paths)
    return match and match.decision


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("touch x", ALLOW),
        ("touch x && git log -p | touch y; touch z", ALLOW),
        ("'tou'ch x # why", ALLOW),
        ("touch x && ls", None),
        ("ls && touch x", None),
        ("touchy x", None),
        ("git", None),
        ("git -C x status", None),
        ("touch x > y", None),
        ("touch $x", None),
        ("touch $(ls)", None),
        ("touch *", None),
        ("(touch x)", None),
        ("touch x &", None),
        ("A=1 touch x", None),
        ("sudo touch x", None),
        ("env A=1 touch x", None),
        ("git push", PROMPT),
        ("echo a && git push origin", PROMPT),
        ("git push -f", FORBIDDEN),
        ("touch x; git push; git push --force", FORBIDDEN),
        ("git push -f > log 2>&1", FORBIDDEN),
        ('git push -f "$remote"', FORBIDDEN),
        ("for x in a b; do git push; done", PROMPT),
        ("echo $(git push)", PROMPT),
        ("sudo -u x git push -f", FORBIDDEN),
        ("timeout 5 git push", PROMPT),
        ("bash -c 'touch x; git push'", PROMPT),
        ("bash -c 'touch x'", None),
        ("g=git; $g push", None),
        ("echo 'git push'", None),
    ],
)
def test_the_strictest_rule_decides_and_allow_needs_certainty(
    script: str, expected: Decision | None
) -> None:
    assert decision(lc(script)) == expected


def test_a_match_says_which_rules_and_why() -> None:
    match = RULES.decide(["git", "push", "-f", "origin"])
    assert match is not None
    assert match == RuleMatch(
        (
            MatchedRule(("git", "push"), PROMPT, "it leaves the machine"),
            MatchedRule(("git", "push", "-f"), FORBIDDEN, "it loses commits"),
        )
    )
    assert (match.decision, match.deciding.justification) == (
        FORBIDDEN,
        "it loses commits",
    )


def test_the_rule_with_the_longest_prefix_gives_the_reason() -> None:
    rules = CommandRules(
        (
            PrefixRule((("a",),), FORBIDDEN, "short"),
            PrefixRule((("a",), ("b",)), FORBIDDEN),
            PrefixRule((("a",), ("b",), ("c",)), PROMPT, "milder"),
        )
    )
    match = rules.decide(["a", "b", "c"])
    assert match is not None
    assert match.deciding == MatchedRule(("a", "b"), FORBIDDEN)
    assert match.deciding.justification is None


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        # A path of the system, and one that anybody can have written.
        (["/usr/bin/touch", "x"], ALLOW),
        (["/tmp/touch", "x"], None),
        (["./touch", "x"], None),
        (["/usr/bin/../../tmp/touch", "x"], None),
        (["/tmp/link/../usr/bin/touch", "x"], None),
        (["/link/../usr/bin/touch", "x"], None),
        # What only asks holds for every path.
        (["/tmp/git", "push"], PROMPT),
        (["/usr/lib/../bin/git", "push"], PROMPT),
        (["./git", "push", "-f"], FORBIDDEN),
        # Listed paths are the only ones.
        (["/opt/make/bin/make"], ALLOW),
        (["/opt/make/lib/../bin/make"], None),
        (["/usr/bin/make"], None),
        (["make"], ALLOW),
    ],
)
def test_a_rule_for_a_name_holds_for_paths(
    argv: list[str], expected: Decision | None
) -> None:
    assert decision(argv) == expected
    assert decision(argv, resolve_paths=False) == (ALLOW if argv == ["make"] else None)


def test_a_path_that_was_resolved_is_named() -> None:
    match = RULES.decide(["/usr/bin/git", "log", "-p"])
    assert match is not None
    assert match.matched == (MatchedRule(("git", "log"), ALLOW, None, "/usr/bin/git"),)


def test_a_rule_for_the_path_itself_comes_first() -> None:
    rules = CommandRules(
        (PrefixRule((("/bin/cat",),), PROMPT), PrefixRule((("cat",),), FORBIDDEN))
    )
    match = rules.decide(["/bin/cat", "x"])
    assert match is not None
    assert match.matched == (MatchedRule(("/bin/cat",), PROMPT),)


def test_a_rule_can_be_about_the_shell_itself() -> None:
    rules = CommandRules((PrefixRule((("bash",), ("-lc",))),))
    assert rules.decide(["bash", "-lc", "ls > x"]) is not None
    assert rules.decide(["bash", "-c", "ls"]) is None


@pytest.mark.parametrize("decision", [PROMPT, FORBIDDEN])
def test_an_unreadable_script_counts_as_covered_by_the_strictest_rule(
    decision: Decision,
) -> None:
    script = lc("git push 2>&1\n: $x\n" + "cat <<A " * 15_000)
    rules = CommandRules(
        (
            PrefixRule((("make",),)),
            PrefixRule((("x",),), PROMPT),
            PrefixRule((("y",),), decision),
        )
    )
    match = rules.decide(script)
    assert match is not None
    assert match.decision is decision
    assert match.deciding.justification is not None
    assert "make it shorter" in match.deciding.justification
    assert CommandRules((PrefixRule((("make",),)),)).decide(script) is None


@pytest.mark.parametrize(
    "script",
    ["git -c a=b push -f", "git -C x --no-pager push -f", "git --git-dir x push -f"],
)
def test_a_rule_for_git_sees_through_the_options_before_the_subcommand(
    script: str,
) -> None:
    assert decision(lc(script)) == FORBIDDEN


def test_no_rules_and_no_command_decide_nothing() -> None:
    assert CommandRules().decide(["touch"]) is None
    assert RULES.decide([]) is None
    assert RULES.decide([""]) is None
