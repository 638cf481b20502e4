from dataclasses import fields
from pathlib import Path
from types import EllipsisType, NoneType
from typing import Any, get_args

import pytest

from codex_py.config.check import kind_of, member
from codex_py.config.config import Config
from codex_py.config.requirements import known_keys
from codex_py.config.schema import DEFAULTS, TABLES
from codex_py.config.tables import AnyOf, Kind
from codex_py.protocol.approval import (
    DEFAULT_LIMITS,
    ApprovalKind,
    ApprovalPolicy,
    SandboxLimits,
    SandboxMode,
)

_KINDS: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "count", "limit"),
    str: ("string",),
    Path: ("path",),
}
_KEYS = {
    each.name: each.metadata["key"] or each.name
    for each in fields(Config)
    if "key" in each.metadata
}


@pytest.mark.parametrize("name", _KEYS)
def test_a_field_has_the_type_of_its_key(name: str):
    kind = kind_of(tuple(_KEYS[name].split(".")))
    (annotation,) = (each.type for each in fields(Config) if each.name == name)
    assert kind in _kinds(annotation)


@pytest.mark.parametrize("name", _KEYS)
def test_a_field_may_be_none_if_its_key_has_no_default(name: str):
    (annotation,) = (each.type for each in fields(Config) if each.name == name)
    assert (NoneType in get_args(annotation)) == (_KEYS[name] not in DEFAULTS)


def test_the_table_has_the_policies_the_modes_and_the_limits_of_the_program():
    assert kind_of(("sandbox_mode",)) == get_args(SandboxMode)
    policies = kind_of(("approval_policy",))
    assert isinstance(policies, AnyOf)
    assert policies[0] == tuple(ApprovalPolicy)
    assert [*TABLES["approval_policy.granular"]] == [*get_args(ApprovalKind)]
    limits: Any = {
        name: DEFAULTS.get(f"sandbox_limits.{name}")
        for name in TABLES["sandbox_limits"]
    }
    assert SandboxLimits(**limits) == DEFAULT_LIMITS


def test_the_table_of_requirements_has_them_too():
    allowed = {
        "allowed_sandbox_modes": get_args(SandboxMode),
        "allowed_approval_policies": tuple(ApprovalPolicy),
        "allowed_web_search_modes": kind_of(("web_search",)),
        "allowed_approvals_reviewers": kind_of(("approvals_reviewer",)),
    }
    table = known_keys()
    assert {name: member(table, name) for name in allowed} == {
        k: [v] for k, v in allowed.items()
    }


def _kinds(annotation: Any) -> list[Kind]:
    """The kinds of keys whose values have a type, with None or without it."""
    if annotation in _KINDS:
        return [*_KINDS[annotation]]
    match get_args(annotation):
        case (str(), *_) as choices:
            return [choices]
        case (element, EllipsisType()):
            return [[kind] for kind in _kinds(element)]
        case (given, _):
            return _kinds(given)
        case _:
            raise AssertionError(f"no key has values of the type {annotation}")
