"""What the declaration of settings says agrees with the types of the program, and with `Config`."""

from dataclasses import fields
from types import NoneType
from typing import Any, get_args

import pytest

from codex_py.config.check import kind_of
from codex_py.config.config import Config
from codex_py.config.declared.kinds import alternatives
from codex_py.config.declared.permissions import GranularRules, SandboxLimits
from codex_py.config.declared.requirements import RequirementKeys
from codex_py.config.declared.section import defaults, keys_of, names_of
from codex_py.config.declared.settings import Settings
from codex_py.protocol import approval
from codex_py.protocol.approval import (
    DEFAULT_LIMITS,
    ApprovalKind,
    ApprovalPolicy,
    SandboxMode,
)

_KEYS = {
    each.name: each.metadata["key"] or each.name
    for each in fields(Config)
    if "key" in each.metadata
}
_TYPES = {each.name: each.type for each in fields(Config)}


@pytest.mark.parametrize("name", _KEYS)
def test_a_field_has_the_type_of_its_key(name: str):
    (kind,) = alternatives(_TYPES[name])
    assert _without_notes(kind_of(tuple(_KEYS[name].split(".")))) == kind


def _without_notes(kind: Any) -> Any:
    return getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind


@pytest.mark.parametrize("name", _KEYS)
def test_a_field_may_be_none_if_its_key_has_no_default(name: str):
    is_set = _KEYS[name] in dict(defaults(Settings))
    assert (NoneType in get_args(_TYPES[name])) != is_set


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
        "allowed_approvals_reviewers": get_args(kind_of(("approvals_reviewer",))),
    }
    for name, choices in allowed.items():
        (element, _) = get_args(kind_of((name,), RequirementKeys))
        assert get_args(element) == choices
