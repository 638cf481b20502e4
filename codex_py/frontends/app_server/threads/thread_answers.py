"""Describes an open thread in the format of Codex, as the answers about threads have it."""

import asyncio
from typing import Final

from codex_py.frontends.app_server.threads import history
from codex_py.frontends.app_server.threads.thread import AppThread
from codex_py.frontends.app_server.turn_items.items import Fields
from codex_py.protocol.approval import SandboxPolicy, approval_data

_SANDBOXES: Final = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}


async def opened_answer(thread: AppThread, *, with_turns: bool) -> Fields:
    """Make the answer to a request that opens a thread. `with_turns`: the thread has its turns."""
    told = settings_data(thread)
    return {
        "thread": await thread_data(thread, with_turns=with_turns),
        "model": told["model"],
        "modelProvider": told["modelProvider"],
        "serviceTier": told["serviceTier"],
        "cwd": told["cwd"],
        "instructionSources": [],
        "approvalPolicy": told["approvalPolicy"],
        "approvalsReviewer": told["approvalsReviewer"],
        "sandbox": told["sandboxPolicy"],
        "reasoningEffort": told["effort"],
        "collaborationMode": told["collaborationMode"],
    }


def settings_data(thread: AppThread) -> Fields:
    """Describe the settings that the user chose, whatever the mode makes of them."""
    settings = thread.session.settings
    choices = settings.choices
    config = thread.config
    mode: Fields = {
        "mode": choices.mode,
        "settings": {
            "model": settings.model,
            "reasoning_effort": choices.reasoning_effort,
            "developer_instructions": None,
        },
    }
    return {
        "cwd": str(config.cwd),
        "approvalPolicy": approval_data(choices.approval_policy),
        "approvalsReviewer": _reviewer(config.settings.approvals_reviewer),
        "sandboxPolicy": _sandbox_data(choices.sandbox_policy),
        "model": settings.model,
        "modelProvider": config.model_provider,
        "serviceTier": settings.service_tier,
        "effort": choices.reasoning_effort,
        "summary": choices.reasoning_summary,
        "collaborationMode": mode,
    }


async def thread_data(thread: AppThread, *, with_turns: bool) -> Fields:
    """Describe a thread whose session is open. `with_turns`: the thread has its turns."""
    session = thread.session
    path = session.session_file
    if path is None:
        data = history.unsaved_thread(session, thread.config)
        data["status"] = thread.status
        return data
    model = session.settings.model
    data = await asyncio.to_thread(history.thread_data, path, session.name, model)
    # A turn may have moved the thread to another folder.
    data["cwd"] = str(thread.config.cwd)
    if with_turns:
        running = thread.feed and thread.feed.turn_id
        data["turns"] = await asyncio.to_thread(history.read_turns, path, running)
    data["status"] = thread.status
    return data


def _reviewer(setting: str | None) -> str:
    """A reviewer as the protocol names it, which knows none of installed packages."""
    if setting in {None, "user", "guardian_subagent"}:
        return setting or "user"
    return "auto_review"


def _sandbox_data(policy: SandboxPolicy) -> Fields:
    """A policy in the format of Codex. A mode has only the fields that hold in it."""
    data: Fields = {"type": _SANDBOXES[policy.mode]}
    if policy.mode != "danger-full-access":
        data["networkAccess"] = policy.network_access
    if policy.mode == "workspace-write":
        data["writableRoots"] = [str(root) for root in policy.writable_roots]
        data["excludeTmpdirEnvVar"] = policy.exclude_tmpdir_env_var
        data["excludeSlashTmp"] = policy.exclude_slash_tmp
    return data
