from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import get_args

import pytest

from codex_py.app.told_context import (
    environment_context,
    permissions_instructions,
    timezone_name,
)
from codex_py.instructions import instruction_text
from codex_py.protocol.approval import (
    ApprovalPolicy,
    AskForApproval,
    GranularPolicy,
    SandboxMode,
    SandboxPolicy,
)
from codex_py.protocol.domain_rules import DomainRules

CWD = Path("/repo")


def environment(policy: SandboxPolicy, cwd: Path = CWD) -> str:
    return environment_context(
        cwd=cwd,
        shell="/bin/bash",
        sandbox_policy=policy,
        today=date(2026, 11, 20),
        timezone="Etc/UTC",
    )


def test_the_environment_of_a_read_only_session_reads_as_codex_writes_it():
    assert environment(SandboxPolicy()) == (
        "<environment_context>\n"
        "  <cwd>/repo</cwd>\n"
        "  <shell>bash</shell>\n"
        "  <current_date>2026-11-20</current_date>\n"
        "  <timezone>Etc/UTC</timezone>\n"
        "  <filesystem><workspace_roots><root>/repo</root></workspace_roots>"
        '<permission_profile type="managed"><file_system type="restricted">'
        '<entry access="read"><special>:root</special></entry>'
        "</file_system></permission_profile></filesystem>\n"
        "</environment_context>"
    )


def test_writable_folders_are_listed_with_what_stays_protected_in_them():
    policy = SandboxPolicy(
        mode="workspace-write",
        writable_roots=(CWD, Path("/a&b")),
        exclude_slash_tmp=True,
    )
    assert (
        "<workspace_roots><root>/repo</root><root>/a&amp;b</root></workspace_roots>"
        '<permission_profile type="managed"><file_system type="restricted">'
        '<entry access="read"><special>:root</special></entry>'
        '<entry access="write"><path>/repo</path></entry>'
        '<entry access="write"><path>/a&amp;b</path></entry>'
        '<entry access="write"><special>:tmpdir</special></entry>'
        '<entry access="read"><path>/repo/.git</path></entry>'
        '<entry access="read"><path>/a&amp;b/.git</path></entry>'
        '<entry access="read"><path>/repo/.agents</path></entry>'
    ) in environment(policy)


def test_full_access_has_no_restrictions_and_a_path_no_markup():
    assert ("  <cwd>/&lt;x&gt;</cwd>\n") in (
        text := environment(SandboxPolicy(mode="danger-full-access"), Path("/<x>"))
    )
    assert (
        '<permission_profile type="disabled"><file_system type="unrestricted" /></permission_profile>'
    ) in text


@pytest.mark.parametrize("mode", get_args(SandboxMode))
@pytest.mark.parametrize(
    "approval",
    [
        *ApprovalPolicy,
        GranularPolicy(sandbox_approval=True, rules=True, mcp_elicitations=True),
        GranularPolicy(sandbox_approval=False, rules=False, mcp_elicitations=False),
    ],
)
def test_permissions_are_told_for_every_policy(
    mode: SandboxMode, approval: AskForApproval
):
    text = permissions_instructions(SandboxPolicy(mode=mode), approval, CWD)
    assert text.startswith(f"<permissions instructions>\nThe sandbox mode is `{mode}`")
    assert f"The approval policy is `{approval}`" in text
    assert text.endswith("\n</permissions instructions>")


def test_the_way_to_ask_is_told_where_asking_is_possible():
    def told(policy: AskForApproval) -> str:
        return permissions_instructions(SandboxPolicy(), policy, CWD)

    how = instruction_text("permissions/escalation.md")
    asks = GranularPolicy(sandbox_approval=True, rules=False, mcp_elicitations=True)
    refuses = GranularPolicy(sandbox_approval=False, rules=True, mcp_elicitations=False)
    policies = [*ApprovalPolicy, asks, refuses]
    assert [policy for policy in policies if how not in told(policy)] == [
        ApprovalPolicy.NEVER,
        refuses,
    ]
    assert (
        "\n- The user is asked about: commands for which a rule of the user asks.\n"
        "- Refused without a question is: what wants to leave the sandbox, and dangerous commands;"
        " what tools of MCP servers need a yes or an answer for.\n"
    ) in told(refuses)


def test_permissions_name_the_network_and_the_writable_folders():
    policy = SandboxPolicy(mode="workspace-write", writable_roots=(CWD, Path("/w")))
    text = permissions_instructions(policy, ApprovalPolicy.NEVER, CWD)
    assert "Writable folders: `/repo`, `/w`." in text
    assert instruction_text("permissions/network-restricted.md") in text
    full = SandboxPolicy(mode="danger-full-access")
    assert instruction_text(
        "permissions/network-enabled.md"
    ) in permissions_instructions(full, ApprovalPolicy.NEVER, CWD)


def test_permissions_name_the_hosts_of_a_list():
    domains = DomainRules(("a.test", "*.b.test:443"), ("c.b.test",))
    policy = SandboxPolicy(mode="read-only", network_access=True, domains=domains)
    text = permissions_instructions(policy, ApprovalPolicy.NEVER, CWD)
    assert instruction_text("permissions/network-listed.md") in text
    assert "Allowed hosts: `a.test`, `*.b.test:443`.\nDenied hosts: `c.b.test`." in text
    offline = replace(policy, network_access=False)
    assert "a.test" not in permissions_instructions(offline, ApprovalPolicy.NEVER, CWD)


def test_the_time_zone_has_an_iana_name():
    assert timezone_name({"TZ": "Europe/Paris"}) == "Europe/Paris"
    assert timezone_name({"TZ": ":/usr/share/zoneinfo/Asia/Tokyo"}) == "Asia/Tokyo"
    assert timezone_name({})
