"""The page of a first run without a model to ask: enter a key, use a local server, sign in, or see the
demo.

A key goes into `auth.json` alone: it is shown as asterisks, and no history, screen or file of a
session has it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.clipboard import ClipboardData

from codex_py.app.exec_process import PROGRAM
from codex_py.app.providers.local_servers import local_settings
from codex_py.app.providers.set_keys import SetKey, advice, set_keys
from codex_py.app.stored_login import checked_key, store_key
from codex_py.config.config import Config
from codex_py.config.declared.section import is_set
from codex_py.config.edit import set_in_config
from codex_py.config.permission_profiles import SECRETS
from codex_py.errors import CodexError, ConfigError, ExitCode, ModelError
from codex_py.frontends.tui.fitting import Fragments
from codex_py.frontends.tui.menu import MenuOption
from codex_py.frontends.tui.panel import Choice, TextField, field_of, yes_or_no
from codex_py.frontends.tui.terminal_ui import TerminalUI
from codex_py.frontends.tui.transcript import Transcript
from codex_py.process.terminal_child import run_in_terminal
from codex_py.protocol.provider_ids import LOCAL_PROVIDERS
from codex_py.streams.standard import tell
from codex_py.streams.terminal import printable

_KEY = "key"
_PLAN = "plan"
_DEMO = "demo"
_LATER = "later"
_HEAD: Final = "No model can be asked yet: there is no key."
_HEAD_WITH_KEYS: Final = "No model is chosen yet, and there is no key of OpenAI."
_KEYS_OF_OPENAI: Final = ("CODEX_API_KEY", "OPENAI_API_KEY")
_LEAST_KEY: Final = 20
"""Characters. A shorter text, pasted where no key is asked for, is a prompt."""


def is_first_run(config: Config, environment: Mapping[str, str]) -> bool:
    """True if no provider is configured, and OpenAI's has no key in the environment."""
    if is_set(config.settings, "model_provider") or config.model_providers:
        return False
    return not any(environment.get(name, "").strip() for name in _KEYS_OF_OPENAI)


async def first_run(
    ui: TerminalUI,
    config: Config,
    transcript: Transcript,
) -> bool:
    """Show the page until the user has chosen; True if the configuration has changed.

    False: the user wants to choose later.

    Raises:
        CodexError: the choice could not be kept.
    """
    environment = ui.environment
    # The page fills this field if a key is pasted there. `_entered_key` then asks about it.
    key_field = field_of()
    servers = await _local_servers(config, environment)
    keys = {key.provider: key for key in set_keys(config, environment)}
    has_plans = config.settings.forced_login_method != "api"
    while True:
        page = partial(
            FirstPage, servers, key_field, list(keys.values()), has_plans=has_plans
        )
        choice = await ui.panels.ask(page, about="How do you want to begin?")
        if choice == _LATER:
            return False
        if choice == _DEMO:
            demo = [*PROGRAM, "demo"]
            await ui.screen.pause(partial(run_in_terminal, demo, environment))
        elif choice == _PLAN:
            code = await ui.screen.pause(partial(_sign_in, environment))
            if code == ExitCode.DONE:
                transcript.notice("Signed in with ChatGPT.")
                break
        elif choice in keys and keys[choice].model is None:
            # Only the user knows a model of this provider.
            transcript.notice(advice(config, environment))
            return False
        elif choice in keys:
            settings = {"model_provider": choice, "model": keys[choice].model}
            _choose_model(config, settings, transcript)
            break
        elif choice in servers:
            _choose_model(config, servers[choice], transcript)
            break
        else:
            key = await _entered_key(ui, key_field)
            if key:
                store_key(config, key)
                message = "API key saved. It is checked when you send a request."
                transcript.notice(message)
                break
        key_field.reset()
    await _protect(ui, config, transcript)
    return True


def _sign_in(environment: Mapping[str, str]) -> int:
    """Sign in with ChatGPT in a process of its own. Returns its exit code.

    So the terminal shows the address and takes a pasted one as for `codex-py login`.
    """
    tell("Esc or Ctrl-C goes back to the choices.")
    return run_in_terminal([*PROGRAM, "login"], environment)


def _choose_model(
    config: Config, settings: Mapping[str, Any], transcript: Transcript
) -> None:
    """Write the model and its provider into our own configuration file."""
    for name, value in settings.items():
        set_in_config(config.home / "codex-py", (name,), value)
    model = printable(f"{settings['model_provider']}/{settings['model']}")
    transcript.notice(
        f"{model} is used from now on: {config.home}/codex-py/config.toml"
    )


async def _local_servers(
    config: Config, environment: Mapping[str, str]
) -> Mapping[str, Mapping[str, Any]]:
    """The settings of the servers on this machine that answer, by the provider's name."""
    probes = [
        asyncio.to_thread(_local, config, name, environment) for name in LOCAL_PROVIDERS
    ]
    servers: dict[str, Mapping[str, Any]] = {}
    for settings in await asyncio.gather(*probes):
        if settings:
            servers[settings["model_provider"]] = settings
    return servers


def _local(
    config: Config, name: str, environment: Mapping[str, str]
) -> Mapping[str, Any] | None:
    """The settings for a server; None if it does not answer, or has no model."""
    with suppress(ConfigError, ModelError):
        return local_settings(config, name, None, environment)
    return None


class FirstPage(Choice[str]):
    """The question. A text that looks like a key is written into the key's field.

    This holds however the terminal sends a paste.

    Args:
        servers: the settings of the servers on this machine that answer, by name.
        field: the field for the key.
        keys: other providers whose key is in the environment.
        has_plans: offer to sign in with ChatGPT.
    """

    def __init__(
        self,
        servers: Mapping[str, Mapping[str, Any]],
        field: Buffer,
        keys: Sequence[SetKey] = (),
        *,
        has_plans: bool = True,
    ) -> None:
        options = [MenuOption(_key_label(key), key.provider) for key in keys]
        options.append(MenuOption("Paste an API key of OpenAI", _KEY, "k"))
        for name, settings in servers.items():
            label = printable(f"{name} on this machine: {settings['model']}")
            options.append(MenuOption(label, name))
        if has_plans:
            options.append(MenuOption("Sign in with ChatGPT", _PLAN, "c"))
        options += [
            MenuOption("See the demo, without a key or a network", _DEMO, "d"),
            MenuOption("Not now: say what else can be done", _LATER, "n"),
        ]
        head = _HEAD_WITH_KEYS if keys else _HEAD
        question: Fragments = [("bold", head), ("", "\n\nHow do you want to begin?")]
        super().__init__(question, options, cancelled=_LATER)
        self._field = field

    def write(self, text: str) -> None:
        key = text.strip()
        looks_like_key = len(text) >= _LEAST_KEY and not _problem(key)
        if looks_like_key:
            self._field.insert_text(key)
            self.give(_KEY)
        else:
            super().write(text)

    def take_burst(self, text: str, take: Callable[[str], None]) -> None:
        # A piece of a key must not be shown either.
        take(text)

    def _meaning(self, typed: str) -> Callable[[], None]:
        # Unknown letters may begin a key, which must not be shown: they wait for the rest, or for Enter.
        return super()._meaning(typed) or partial(self.write, typed)

    def _enter(self) -> None:
        if self._letter:
            self.write(self._letter)
        else:
            super()._enter()


def _key_label(key: SetKey) -> str:
    if key.model is None:
        return f"Say how to use {key.choice}: {key.variable} is set"
    return f"Use {key.choice}: {key.variable} is set"


def _problem(text: str) -> str:
    """The reason why a text is not a key; empty if it may be one."""
    try:
        checked_key(text)
    except CodexError as error:
        return str(error)
    return ""


async def _entered_key(ui: TerminalUI, field: Buffer) -> str | None:
    """Ask for a key, typed or pasted; None if the user gives up."""
    question: Fragments = [
        ("bold", "The API key"),
        ("", "\n\nIt is kept in auth.json alone, for you alone."),
    ]
    entry = TextField(question, check=_problem, field=field, is_hidden=True)
    try:
        return await ui.panels.show(entry)
    finally:
        # Text that was cut in the field could be pasted into a prompt.
        ui.screen.app.clipboard.set_data(ClipboardData())


async def _protect(
    ui: TerminalUI,
    config: Config,
    transcript: Transcript,
) -> None:
    """Offer to keep secrets from the agent, unless the configuration decides on that."""
    if is_set(config.settings, "protection"):
        return
    question: Fragments = [("bold", "Keep secrets from the agent and its commands?")]
    question.append(("", f"\n\nDenied would be: {', '.join(SECRETS)}"))
    panel = partial(yes_or_no, question, "Yes, deny them", "No, change nothing")
    if await ui.panels.ask(panel, about=""):
        set_in_config(config.home / "codex-py", ("protection", "secrets"), "deny")
        transcript.notice('`protection.secrets = "deny"` holds from now on.')
