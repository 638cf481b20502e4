"""A command outside of any session, in the sandbox of the model's commands."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from codex_py.app.user_programs import secret_names, user_programs
from codex_py.config.config import Config
from codex_py.config.environment import (
    allowed_environment,
    hidden_names,
    without_variables,
)
from codex_py.programs import record_writable_roots
from codex_py.protocol.approval import SandboxPolicy
from codex_py.protocol.network_report import NetworkReport
from codex_py.sandbox.choice import PlatformSandbox


class StandaloneCommand:
    """Prepares a command. `release` it once it has ended.

    Attributes:
        cwd: the folder in which the command runs.
        environment: the variables of the command, without secrets.
        network: gets the connections that are refused.
    """

    def __init__(
        self,
        config: Config,
        policy: SandboxPolicy,
        environment: Mapping[str, str],
        add_dirs: Sequence[Path] = (),
        problems: dict[str, str | None] | None = None,
    ) -> None:
        """
        Args:
            config: the configuration of the folder in which the command runs.
            environment: our own environment.
            add_dirs: writable folders besides those of the configuration.
            problems: see `PlatformSandbox`.
        """
        self.cwd = config.cwd
        self._config = config
        self._policy = policy
        secrets = secret_names(config)
        rules = config.shell_environment
        variables = allowed_environment(rules, environment, secrets)
        if not policy.network_access:
            variables["CODEX_SANDBOX_NETWORK_DISABLED"] = "1"
        if policy.profile:
            variables["CODEX_PERMISSION_PROFILE"] = policy.profile
        self.environment = variables
        self.network = NetworkReport()
        self._hidden = hidden_names(rules, environment, secrets)
        programs = user_programs(config, environment, add_dirs)
        self._sandbox = PlatformSandbox(
            programs.environment(variables),
            home=config.home,
            limits=config.sandbox_limits,
            problems=problems,
            network=self.network,
        )

    @property
    def warning(self) -> str | None:
        """See `PlatformSandbox`."""
        return self._sandbox.warning

    def argv(
        self, command: Sequence[str], shown: Collection[str] = ()
    ) -> Sequence[str]:
        """The command line that runs a command in the sandbox.

        Args:
            shown: variables that the command gets although they are hidden otherwise.

        Raises:
            ToolError: the command cannot be confined.
        """
        config = self._config
        record_writable_roots(config.home, self.environment, self._policy)
        cleaned = without_variables(command, self._hidden.difference(shown))
        return self._sandbox.command(cleaned, self._policy, config.cwd)

    def release(self) -> None:
        """Remove what the sandbox has made for the command. Blocks for up to a second."""
        self._sandbox.release()
