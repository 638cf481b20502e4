"""Describes a sandbox policy in a few words."""

from pathlib import Path

from codex_py.protocol.approval import SandboxPolicy


def sandbox_summary(policy: SandboxPolicy, cwd: Path) -> str:
    """`read-only`, or `workspace-write [workdir, /tmp, $TMPDIR, …] (network access enabled)`."""
    if policy.mode != "workspace-write":
        return policy.mode
    places = ["workdir"]
    if not policy.exclude_slash_tmp:
        places.append("/tmp")
    if not policy.exclude_tmpdir_env_var:
        places.append("$TMPDIR")
    places += [str(root) for root in policy.writable_roots if root != cwd]
    network = " (network access enabled)" if policy.network_access else ""
    return f"workspace-write [{', '.join(places)}]{network}"
