"""The parts that the tools of a session need: router, sandbox and processes.

They are loaded after the session's first request.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from codex_py.app.options import SessionSetup
from codex_py.app.user_programs import secret_names, user_programs, user_shell
from codex_py.config.environment import (
    child_environment,
    environment_after_profile,
    hidden_names,
)
from codex_py.core.session import Session
from codex_py.errors import cause
from codex_py.execpolicy.added_rule import allow_prefix
from codex_py.execpolicy.decision import CommandRules
from codex_py.execpolicy.words import plain_script
from codex_py.model.catalog import ModelInfo, model_info
from codex_py.process.sessions import ProcessSessions
from codex_py.programs import record_writable_roots
from codex_py.protocol.approval import (
    ApprovalRequest,
    Review,
    ReviewDecision,
    SandboxPolicy,
)
from codex_py.protocol.dispatch import Approvals, Dispatch, Tool
from codex_py.protocol.extension import Extension, ToolFinder
from codex_py.protocol.frozen import frozen
from codex_py.sandbox.choice import PlatformSandbox
from codex_py.tools.builtin import builtin_tools
from codex_py.tools.plan import UpdatePlan
from codex_py.tools.router import ToolRouter
from codex_py.tools.shell.orchestrator import Orchestrator
from codex_py.tools.shell.snapshot import LoginShell


@frozen(kw_only=True)
class ToolParts:
    """The parts; see `make_parts`."""

    router: ToolRouter
    approvals: Approvals
    processes: ProcessSessions
    plan: UpdatePlan
    sandbox: PlatformSandbox
    profile_sandbox: PlatformSandbox
    """The sandbox of the login shell's profile. It is offline if there is a list of domains.

    It is separate from `sandbox`: if it is unavailable, a session without commands lacks nothing.
    """
    login_shell: LoginShell
    script_shell: Sequence[str]
    """The user's shell with the option that takes a script."""
    environment: dict[str, str]
    """The environment of child processes."""
    hidden: frozenset[str]
    """The names of variables that child processes must not see."""
    record: Callable[[SandboxPolicy], None]
    """Records the folders in which the sandbox lets commands write. Programs in them are not run
    later; see `programs.record_writable_roots`."""
    output_token_limit: int

    def prepare(self) -> None:
        """Use the time until the first call: compile the patterns that read a command, 5 ms."""
        plain_script("true")


def make_parts(
    setup: SessionSetup,
    session: Session,
    rules: CommandRules | None,
    *,
    with_latest_settings: Callable[[Dispatch], Dispatch],
    last_finished: Callable[[], None],
) -> ToolParts:
    """Make the parts.

    Args:
        rules: the rules for commands; None without rules.
        with_latest_settings: the outermost wrapper of each call, when its turn has come.
        last_finished: called when the last running command has ended.
    """
    config = setup.config
    extension = session.extension
    info = model_info(config.model, config.settings.model_catalog_json)
    processes = ProcessSessions()
    processes.on_last_finished = last_finished
    plan = UpdatePlan()
    environment = _environment(setup, session)
    sandbox, profile_sandbox = _sandboxes(setup, environment)
    login_shell = _login_shell(setup, session, environment, profile_sandbox)
    hidden = _hidden(setup)
    shell = user_shell(setup.environment)
    outside = None
    if setup.options.starts_outside is not None:
        outside = setup.options.starts_outside(processes)
    orchestrator = Orchestrator(
        sandbox,
        hidden=hidden,
        shell=shell,
        rules=rules or CommandRules(),
        write_rule=partial(_write_rule, session, setup),
        outside=outside,
        leads_outside=setup.options.leads_outside,
    )
    tools = _tools(
        setup,
        session,
        info,
        processes=processes,
        plan=plan,
        login_shell=login_shell,
        orchestrator=orchestrator,
    )
    approver = extension.wrap_approver(setup.approver or _DenyingApprover())
    nickname = session.parent.nickname if session.parent else None
    script_option = "-lc" if config.settings.allow_login_shell else "-c"
    limit = config.settings.tool_output_token_limit or info.truncation_limit_tokens
    return ToolParts(
        router=ToolRouter(
            _finder(tools, extension),
            lambda inner: with_latest_settings(extension.wrap_dispatch(inner)),
        ),
        approvals=Approvals(approver, session.abort, setup.asking, nickname),
        processes=processes,
        plan=plan,
        sandbox=sandbox,
        profile_sandbox=profile_sandbox,
        login_shell=login_shell,
        script_shell=[shell, script_option],
        environment=environment,
        hidden=hidden,
        record=cache(partial(record_writable_roots, config.home, environment)),
        output_token_limit=limit,
    )


def _environment(setup: SessionSetup, session: Session) -> dict[str, str]:
    """The environment of child processes."""
    policy = session.settings.sandbox_policy
    return child_environment(
        setup.config.shell_environment,
        setup.environment,
        thread_id=session.thread_id,
        network_disabled=not policy.network_access,
        secret_names=secret_names(setup.config),
        profile=policy.profile,
    )


def _hidden(setup: SessionSetup) -> frozenset[str]:
    """The names of variables that child processes must not see."""
    config = setup.config
    secrets = secret_names(config)
    return hidden_names(config.shell_environment, setup.environment, secrets)


def _sandboxes(
    setup: SessionSetup, environment: Mapping[str, str]
) -> tuple[PlatformSandbox, PlatformSandbox]:
    """Return the sandbox of commands, and the sandbox of the login shell's profile."""
    config = setup.config
    programs = user_programs(config, setup.environment, setup.options.add_dirs)
    # The home is read-only for commands: the configuration says what they may do.
    new_sandbox = partial(
        PlatformSandbox,
        programs.environment(environment),
        home=config.home,
        limits=config.sandbox_limits,
        problems=setup.backend_problems,
        folder_times=setup.folder_times,
    )
    return new_sandbox(network=setup.network), new_sandbox()


def _login_shell(
    setup: SessionSetup,
    session: Session,
    environment: dict[str, str],
    sandbox: PlatformSandbox,
) -> LoginShell:
    """Return the shell whose profile commands get.

    If commands may have the profile, the first snapshot is begun at once.
    """

    def confined(argv: Sequence[str]) -> Sequence[str]:
        settings = session.settings
        # A profile need not write to the workspace, so nothing there needs protection meanwhile.
        policy = replace(settings.sandbox_policy, writable_roots=())
        return sandbox.command(argv, policy, settings.cwd)

    config = setup.config
    secrets = secret_names(config)
    shell = LoginShell(
        user_shell(setup.environment),
        environment,
        partial(environment_after_profile, config.shell_environment, secrets),
        confined,
        session.settings.cwd,
        setup.shell_snapshots,
    )
    if config.settings.allow_login_shell:
        shell.begin()
    return shell


def _tools(
    setup: SessionSetup,
    session: Session,
    info: ModelInfo,
    *,
    processes: ProcessSessions,
    plan: UpdatePlan,
    login_shell: LoginShell,
    orchestrator: Orchestrator,
) -> Mapping[str, Callable[[], Tool[Any]]]:
    """The functions that make our tools, by the names of the tools."""
    config = setup.config
    return builtin_tools(
        processes,
        plan,
        orchestrator,
        home=config.home,
        shell=user_shell(setup.environment),
        structured_shell=not info.freeform_apply_patch,
        image_rule=session.settings.image_rule,
        max_poll_ms=config.settings.background_terminal_max_timeout,
        allow_login_shell=config.settings.allow_login_shell,
        login_shell=login_shell if config.settings.allow_login_shell else None,
        unambiguous_patches=config.settings.patch.ambiguous == "refuse",
        open_texts=setup.options.open_texts,
    )


def _write_rule(
    session: Session,
    setup: SessionSetup,
    prefix: Sequence[str],
) -> None:
    """Save a rule that allows commands with this prefix, or warn that this failed."""
    folder = setup.config.home / "rules"
    try:
        allow_prefix(folder, prefix)
    except (OSError, ValueError) as error:
        session.warn(
            f"The rule could not be written to {folder}: {cause(error)}. It holds for this session."
        )


def _finder(
    builtin: Mapping[str, Callable[[], Tool[Any]]],
    extension: Extension,
) -> ToolFinder:
    """Make the function that finds our tools and those of extensions.

    A tool that is always offered is loaded by its first call.
    """
    offered = {tool.name: tool.load for tool in extension.tools}
    makers = {**offered, **builtin}
    loaders = {name: cache(make) for name, make in makers.items()}
    find_other = extension.find_tool()

    def find(name: str) -> Tool[Any] | None:
        if name in loaders:
            return loaders[name]()
        return find_other(name)

    return find


class _DenyingApprover:
    """Denies every request, for sessions without a user."""

    async def review(self, request: ApprovalRequest) -> Review:  # noqa: ARG002
        return Review(ReviewDecision.DENIED, "there is nobody to ask")
