"""What a client can choose for a session."""

from dataclasses import replace
from pathlib import Path

import pytest

from codex_py.app.json_rpc import RpcError
from codex_py.app.settings import configured_choices
from codex_py.config.config import load_config
from codex_py.config.requirements import Requirements
from codex_py.frontends.acp.options import EditorOptions


def options(tmp_path: Path, requirements: Requirements) -> EditorOptions:
    config = load_config(
        cwd=tmp_path, environment={"HOME": str(tmp_path)}, ignore_user_config=True
    )
    config = replace(config, requirements=requirements)
    return EditorOptions(config, configured_choices(config, ()), (), ())


@pytest.mark.parametrize(
    ("requirements", "allowed"),
    [
        (Requirements(), ["ask", "never-ask", "read-only", "full-access"]),
        (
            Requirements(modes=("read-only", "workspace-write")),
            ["ask", "never-ask", "read-only"],
        ),
        (Requirements(modes=("read-only",)), ["read-only"]),
        (Requirements(approvals=("on-request",)), ["ask", "read-only"]),
        (Requirements(approvals=("never",)), ["never-ask", "full-access"]),
        (Requirements(modes=("read-only",), approvals=("never",)), []),
    ],
)
def test_options_that_the_administrator_forbids_are_neither_offered_nor_chosen(
    tmp_path: Path, requirements: Requirements, allowed: list[str]
) -> None:
    offered = options(tmp_path, requirements)
    own = offered.configured
    for shown in (
        [mode["id"] for mode in offered.modes(own)["availableModes"]],
        [option["value"] for option in offered.shown(own)[0]["options"]],
    ):
        assert shown == [*allowed, "configured", "plan"]
    for value in ("ask", "never-ask", "read-only", "full-access"):
        if value in allowed:
            assert (
                offered.modes(offered.chosen(own, "mode", value))["currentModeId"]
                == value
            )
        else:
            with pytest.raises(
                RpcError, match=f"'mode' cannot be '{value}': it can be .*plan"
            ):
                offered.chosen(own, "mode", value)
