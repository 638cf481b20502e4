"""What the declaration of settings says agrees with the types of the program.

Tests `config/declared/features.py`, `config/declared/kinds.py`,
`config/declared/model.py`, `config/declared/permissions.py`,
`config/declared/requirements.py`, `config/declared/section.py`,
`config/declared/settings.py`, `config/declared/tools.py` and `config/declared/tui.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from codex_py.config.check import kind_of
from codex_py.config.declared.permissions import GranularRules, SandboxLimits
from codex_py.config.declared.requirements import RequirementKeys
from codex_py.config.declared.section import (
    Key,
    Section,
    is_set,
    key,
    keys_of,
    names_of,
    rest,
    table,
)
from codex_py.config.declared.settings import Settings
from codex_py.protocol import approval
from codex_py.protocol.annotations import alternatives, form, plain
from codex_py.protocol.approval import (
    DEFAULT_LIMITS,
    ApprovalKind,
    ApprovalPolicy,
    SandboxMode,
)


def test_the_declaration_has_the_policies_the_modes_and_the_limits_of_the_program():
    assert get_args(kind_of(("sandbox_mode",))) == get_args(SandboxMode)
    policies = alternatives(kind_of(("approval_policy",)))
    assert get_args(policies[0]) == tuple(ApprovalPolicy)
    assert [*names_of(GranularRules)] == [*get_args(ApprovalKind)]
    limits: Any = {each.name: each.default for each in keys_of(SandboxLimits)}
    assert approval.SandboxLimits(**limits) == DEFAULT_LIMITS


def test_the_declaration_of_requirements_has_them_too():
    allowed = {
        "allowed_sandbox_modes": get_args(SandboxMode),
        "allowed_approval_policies": tuple(ApprovalPolicy),
        "allowed_web_search_modes": get_args(kind_of(("web_search",))),
    }
    for name, choices in allowed.items():
        (element, _) = get_args(kind_of((name,), RequirementKeys))
        assert get_args(element) == choices


class Inner(Section):
    folder: Path | None = key()
    words: tuple[str, ...] = key(default=("a",))


class Outer(Section):
    """A declaration with each kind of key."""

    switch: bool | Inner | None = key()
    async_: bool = key(name="async", default=False)
    inner: Inner = table()
    named: Mapping[str, Inner] = table()
    even: Mapping[str, int] = rest(names=lambda: ("two", "four"))
    others: Mapping[str, Any] = rest()


def test_values_are_read_as_their_types() -> None:
    outer = Outer(
        {
            "switch": {"folder": "/a"},
            "async": True,
            "inner": {"folder": "/b", "words": ["b", "c"]},
            "named": {"x": {"words": []}},
            "two": 2,
            "three": {"free": [1]},
        }
    )
    assert outer.switch == Inner({"folder": "/a"})
    assert outer.async_ is True
    assert (outer.inner.folder, outer.inner.words) == (Path("/b"), ("b", "c"))
    assert outer.named["x"].words == ()
    assert outer.even == {"two": 2}
    assert outer.others == {"three": {"free": [1]}}


def test_an_unset_key_is_its_default_none_or_empty() -> None:
    outer = Outer({})
    assert outer.switch is None
    assert outer.async_ is Outer.async_ is False
    assert (outer.inner.folder, outer.inner.words) == (None, ("a",))
    assert outer.named == outer.even == {}
    assert not is_set(outer, "async")
    assert is_set(Outer({"async": False}), "async")


def test_sections_are_the_same_if_their_values_are_be_they_set_or_defaults() -> None:
    assert Inner({"words": ["a"]}) == Inner({"words": ["a"]}) == Inner({})
    assert Inner({"words": ["b"]}) != Inner({})
    assert Outer({"inner": {"words": ["a"]}}) == Outer({})
    assert Outer({"inner": {"folder": "a"}}) != Outer({})


def test_every_annotation_of_the_configuration_is_one() -> None:
    for cls in (Settings, RequirementKeys):
        for each in declared(cls):
            for option in alternatives(each.kind):
                assert form(option) != "plain" or plain(option).words


def declared(cls: type[Section]) -> Iterator[Key]:
    """The keys of a section, and of those below it."""
    for each in keys_of(cls):
        yield each
        for option in alternatives(each.kind):
            if form(option) == "fields":
                yield from declared(option)
