"""Reads `requirements.toml`: the administrator's requirements, which stand above all settings.

The keys are those of Codex 0.169, but an unknown key stops the start here. `required` puts the
values that it forces into the strongest layers. A `Config` keeps the `Requirements`, because they
also hold for values that a session gets later.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

from codex_py.config.check import KeyPath, dotted, problems
from codex_py.config.declared.names import HOOK_EVENTS, feature_names
from codex_py.config.declared.requirements import RequirementKeys, ServerIdentity
from codex_py.config.declared.section import is_set, raw
from codex_py.config.declared.settings import Settings
from codex_py.config.domains import parsed
from codex_py.config.files import parse_toml, read_text
from codex_py.config.layers import Layer, Layers
from codex_py.config.mcp import McpServerConfig, mcp_servers
from codex_py.config.paths import user_home
from codex_py.config.permission_profiles import (
    BUILT_IN,
    chosen_permissions,
    chosen_profile,
    denial_rules,
)
from codex_py.errors import ConfigError
from codex_py.protocol.approval import ApprovalPolicy, SandboxMode, SandboxPolicy
from codex_py.protocol.domain_rules import DomainRules
from codex_py.protocol.file_rules import NO_RULES, FileRules
from codex_py.protocol.frozen import frozen
from codex_py.protocol.settings import Choices

_FULL: Final = "danger-full-access"
_REVIEWERS: Final = ("auto_review", "guardian_subagent")
"""The two names of one reviewer."""


@frozen(kw_only=True)
class Requirements:
    """The requirements of a session, for all values that it gets. The default requires nothing."""

    file: Layer = Layer("requirements", {})
    """`requirements.toml`, with Codex's keys; empty if it does not exist."""
    modes: tuple[SandboxMode, ...] = get_args(SandboxMode)
    """The allowed modes. Without full access, no approval and no rule lets a call leave the
    sandbox."""
    approvals: tuple[str, ...] = ()
    """The allowed policies, the first of which replaces a forbidden one; empty: all are allowed."""
    files: FileRules = NO_RULES
    """The files that are denied in every mode and profile."""
    profile: str = ""
    """The administrator's permission profile in force; empty if there is none."""
    profile_files: FileRules = NO_RULES
    plain: frozenset[SandboxMode] = frozenset()
    """The modes that are allowed without a profile while one is in force."""
    domains: DomainRules | None = None
    """The domain list. It opens its domains in `workspace-write`, and holds in every mode, even
    outside the sandbox."""
    warnings: tuple[str, ...] = ()

    @property
    def keys(self) -> RequirementKeys:
        return RequirementKeys(self.file.values)

    def held(self, policy: SandboxPolicy) -> SandboxPolicy:
        """Restrict a policy to what is allowed; for a forbidden mode, to one without changes."""
        if policy.mode not in self.modes:
            policy = policy.locked()
        lacks_profile = self.profile != "" and policy.profile != self.profile
        if lacks_profile and policy.mode not in self.plain:
            # The caller built this policy without the administrator's profile.
            files = policy.files.plus(self.profile_files)
            policy = replace(policy.locked(), files=files, profile=self.profile)
        policy = self._with_domains(policy)
        return replace(
            policy,
            files=policy.files.denying(self.files),
            is_final=policy.is_final or _FULL not in self.modes,
        )

    def _with_domains(self, policy: SandboxPolicy) -> SandboxPolicy:
        """Put the administrator's domain list into a policy, with what the user may add to it."""
        if self.domains is None:
            return policy
        domains = self.domains
        own = policy.domains
        if own is not None:
            allow = own.allow
            allows_local = domains.allows_local or own.allows_local
            if domains.is_closed:
                allow = ()
                allows_local = domains.allows_local
            if not policy.network_access:
                allow = ()
            domains = replace(
                domains.plus(allow, own.deny),
                is_limited=own.is_limited,
                allows_local=allows_local,
            )
        has_network = policy.network_access or policy.mode == "workspace-write"
        return replace(policy, network_access=has_network, domains=domains)

    def held_choices(self, choices: Choices) -> Choices:
        """Restrict choices to what is allowed, with allowed values in place of others."""
        approval = choices.approval_policy
        sandbox = self.held(choices.sandbox_policy)
        if self.approvals and str(approval) not in self.approvals:
            if approval is ApprovalPolicy.NEVER and sandbox.mode == _FULL:
                # Nobody would be asked about any call.
                sandbox = sandbox.locked()
            approval = ApprovalPolicy(self.approvals[0])
        return replace(choices, approval_policy=approval, sandbox_policy=sandbox)

    def held_servers(
        self, servers: Mapping[str, McpServerConfig]
    ) -> tuple[dict[str, McpServerConfig], tuple[str, ...]]:
        """Disable the servers that are not allowed; also returns a warning for each of these."""
        if not is_set(self.keys, "mcp_servers"):
            return dict(servers), ()
        allowed = self.keys.mcp_servers
        found = dict(servers)
        notes: list[str] = []
        for name, server in servers.items():
            is_same = name in allowed and _is_same(server, allowed[name].identity)
            if server.enabled and not is_same:
                found[name] = replace(server, enabled=False, required=False)
                notes.append(
                    f"MCP server `{name}` is disabled by requirements (set by {self.file.path})."
                )
        return found, tuple(notes)


def _is_same(server: McpServerConfig, identity: ServerIdentity) -> bool:
    """True if a server has the command and the URL that its identity names."""
    wanted = raw(identity)
    if not wanted:
        return False
    return all(getattr(server, key) == wanted[key] for key in wanted)


def required(layers: Layers) -> tuple[Layers, Requirements]:
    """Read the requirements; returns the layers, with the forced ones on top, and them.

    Raises:
        ConfigError: the file cannot be used, or it forbids a requested value without a fall-back.
    """
    path = layers.system / "requirements.toml"
    text = read_text(path)
    managed = next((layer for layer in layers.layers if layer.name == "managed"), None)
    if text is not None:
        file = Layer(
            "requirements",
            parse_toml(text, path),
            path,
            text,
        )
        _check(file)
    elif managed is not None and not _MANAGED_KEYS.isdisjoint(managed.values):
        file = Layer("requirements", {}, path)
    else:
        return layers, Requirements()
    return _Required(layers, file, managed).result()


_MANAGED_KEYS: Final = frozenset({"sandbox_mode", "approval_policy"})
"""The keys of `managed_config.toml` that count as requirements."""


class _Required:
    """Applies the requirements to the layers, one kind of setting after another.

    What it forces is in further layers on top. `Requirements` is for the values that come later.
    """

    def __init__(
        self,
        layers: Layers,
        file: Layer,
        managed: Layer | None,
    ) -> None:
        self._layers = layers
        self._file = file
        self._keys = RequirementKeys(file.values)
        self._managed: Mapping[str, Any] = {}
        self._managed_path: Path | None = None
        if managed is not None:
            self._managed = managed.values
            self._managed_path = managed.path
        self._notes: list[str] = []

    def result(self) -> tuple[Layers, Requirements]:
        """Apply all requirements; the result is that of `required`."""
        self._force_tables()
        self._disable_servers()
        merged = self._layers.merged()
        self._hold_web_search(merged.get("web_search"))
        self._hold_reviewer(merged.get("approvals_reviewer"))
        files = self._denied()
        approvals = self._approvals()
        modes_of_profiles = self._hold_profile()
        modes: list[SandboxMode] = []
        for mode in self._modes():
            is_open = mode == _FULL and files.denies
            if mode in modes_of_profiles and not is_open:
                modes.append(mode)
        asked = merged.get("approval_policy")
        self._hold_mode(modes, asked, approvals)
        if approvals and (asked or "on-request") not in approvals:
            self._fall_back("approval_policy", asked, approvals)
        name, rules = self._profile_in_force()
        listed = self._keys.allowed_permission_profiles
        plain: list[SandboxMode] = [
            mode for built_in, mode in BUILT_IN.items() if listed.get(built_in)
        ]
        return self._layers, Requirements(
            file=self._file,
            profile=name,
            profile_files=rules,
            plain=frozenset(plain),
            modes=tuple(modes),
            approvals=tuple(approvals),
            files=files,
            domains=self._domains(),
            warnings=tuple(self._notes),
        )

    def _force_tables(self) -> None:
        """Force the features, the hooks and the policy of the reviewer."""
        features = self._features()
        hooks = {
            event: groups
            for event, groups in raw(self._keys.hooks).items()
            if event in HOOK_EVENTS
        }
        review: dict[str, str] = {}
        if self._keys.guardian_policy_config:
            review["policy"] = self._keys.guardian_policy_config
        self._force(features=features, hooks=hooks, auto_review=review)
        if features.get("plugins") is False:
            layers = [each for each in self._layers.layers if each.name != "plugin"]
            self._layers = replace(self._layers, layers=tuple(layers), plugins=())

    def _disable_servers(self) -> None:
        """Disable servers that are not allowed, so that the configuration says so."""
        tables = self._layers.merged().get("mcp_servers", {})
        servers, _ = mcp_servers(
            tables, lambda name: self._layers.where(("mcp_servers", name))
        )
        held, notes = Requirements(file=self._file).held_servers(servers)
        self._notes += notes
        off = {"enabled": False, "required": False}
        disabled = {name: off for name in held if held[name] != servers[name]}
        self._force(mcp_servers=disabled)

    def _hold_web_search(self, asked: str | None) -> None:
        """Force an allowed kind of web search; `disabled` is always allowed."""
        listed = self._keys.allowed_web_search_modes
        if listed is None:
            return
        allowed = list(dict.fromkeys((*listed, "disabled")))
        if (asked or Settings.web_search) not in allowed:
            self._fall_back("web_search", asked, allowed)

    def _hold_reviewer(self, asked: str | None) -> None:
        """Force an allowed reviewer of approvals."""
        listed = self._keys.allowed_approvals_reviewers
        if listed is None:
            return
        if not listed:
            raise _mistake(
                self._file, ("allowed_approvals_reviewers",), "names no value"
            )
        allowed: dict[str, None] = dict.fromkeys(listed)
        if not allowed.keys().isdisjoint(_REVIEWERS):
            allowed |= dict.fromkeys(_REVIEWERS)
        if (asked or "user") not in allowed:
            self._fall_back("approvals_reviewer", asked, list(allowed))

    def _profile_in_force(self) -> tuple[str, FileRules]:
        """Return the name and the rules of the administrator's profile; an empty name if none."""
        _, profile = chosen_permissions(self._layers)
        has_profiles = bool(self._keys.allowed_permission_profiles)
        if not has_profiles or profile is None or not profile.decides:
            return "", NO_RULES
        return profile.name, profile.rules((self._layers.cwd, *profile.roots))

    def _force(self, path: Path | None = None, **values: Any) -> None:
        """Put the values that are not empty into a layer above all others."""
        found = {key: value for key, value in values.items() if value}
        if found:
            layer = replace(self._file, values=found, path=path or self._file.path)
            layers = (layer, *self._layers.layers)
            self._layers = replace(self._layers, layers=layers)

    def _setter(
        self,
        key: str,
        asked: Any,
    ) -> Path | None:
        """The path of the file that forbids this value."""
        if key in self._managed and asked != self._managed[key]:
            return self._managed_path
        return self._file.path

    def _fall_back(
        self,
        key: str,
        asked: Any,
        allowed: Sequence[Any],
    ) -> None:
        """Force the first allowed value. Note that only if another value was configured."""
        path = self._setter(key, asked)
        if asked is not None:
            self._notes.append(
                f"Configured value for `{key}` is disallowed by requirements; falling back to required value"
                f" `{allowed[0]}`. Details: invalid value for `{key}`: {asked!r} is not in the allowed set"
                f" [{', '.join(allowed)}] (set by {path})"
            )
        self._force(path, **{key: allowed[0]})

    def _features(self) -> dict[str, bool]:
        """Return the pinned features; notes the names that are unknown."""
        pins = dict(self._keys.features)
        for name in sorted(pins.keys() - feature_names()):
            del pins[name]
            text = f"Ignoring unknown `features` requirement `{name}` from {self._file.path}"
            self._notes.append(text)
        # Pin the feature under its old name too.
        if "hooks" in pins:
            return {"codex_hooks": pins["hooks"], **pins}
        return pins

    def _denied(self) -> FileRules:
        """Force the denials of files, and return them.

        Raises:
            ConfigError: a pattern cannot be used.
        """
        key = ("permissions", "filesystem", "deny_read")
        patterns = self._keys.permissions.filesystem.deny_read or ()
        for number, pattern in enumerate(patterns):
            text = ""
            if pattern.startswith("/**"):
                text = "cannot be safely expanded; use a pattern with a non-root directory prefix"
            elif not pattern.startswith(("/", "~/")):
                # Such a path would be relative to the administrator's folder, where nobody expects
                # files.
                text = "must be absolute or begin with `~/`"
            if text:
                raise _mistake(self._file, (*key, str(number)), f"{pattern!r} {text}")
        denied = list(_in_homes(dict.fromkeys(patterns)))
        if denied:
            self._force(protection={"deny": denied})
        return denial_rules(
            denied,
            key,
            (),
            self._layers.user_home,
        )

    def _domains(self) -> DomainRules | None:
        """Return the domain list; None if it is not enforced."""
        key = "experimental_network"
        network = self._keys.experimental_network
        is_enabled = network.enabled
        if is_enabled is None:
            is_enabled = bool(raw(network))
        if not is_enabled:
            return None
        allowed: list[str] = []
        denied: list[str] = []
        for text, access in network.domains.items():
            try:
                pattern = parsed(text, ())
            except ConfigError as error:
                raise _mistake(
                    self._file, (key, "domains", text), str(error)
                ) from error
            if access == "allow":
                allowed.append(pattern)
            else:
                denied.append(pattern)
        return DomainRules(
            tuple(allowed),
            tuple(denied),
            allows_local=network.allow_local_binding is True,
            is_required=True,
            is_closed=network.managed_allowed_domains_only is True,
        )

    def _approvals(self) -> list[str]:
        """Return the allowed policies; empty: all are allowed."""
        allowed = self._keys.allowed_approval_policies
        managed = self._managed.get("approval_policy")
        if allowed == ():
            raise _mistake(
                self._file, ("allowed_approval_policies",), "names no policy"
            )
        if isinstance(managed, dict):
            raise ConfigError(
                f"{self._managed_path}: `approval_policy` must be a name here"
            )
        if managed and (not allowed or managed in allowed):
            return [managed]
        return list(allowed or ())

    def _modes(self) -> list[SandboxMode]:
        """Return the allowed modes, without regard to profiles and denials."""
        allowed = self._keys.allowed_sandbox_modes
        if allowed is None:
            allowed = get_args(SandboxMode)
        if "read-only" not in allowed:
            raise _mistake(
                self._file, ("allowed_sandbox_modes",), "must contain `read-only`"
            )
        managed = self._managed.get("sandbox_mode")
        if managed is None:
            return list(allowed)
        return [mode for mode in allowed if mode in {"read-only", managed}]

    def _hold_profile(self) -> set[SandboxMode]:
        """Force an allowed permission profile. Returns the modes that allowed profiles can have.

        Raises:
            ConfigError: the profiles in the file do not fit together.
        """
        own = self._own_profiles()
        if not is_set(self._keys, "allowed_permission_profiles"):
            self._require_no_profile(own)
            return set(get_args(SandboxMode))
        listed = self._keys.allowed_permission_profiles
        allowed = [name for name, is_allowed in listed.items() if is_allowed]
        self._require_known_profiles(own, allowed)
        # Profiles of the same names in other layers do not count.
        others = [_without_profiles(layer, own) for layer in self._layers.layers]
        self._layers = replace(self._layers, layers=tuple(others))
        self._force(permissions=own)
        name = self._asked_profile()
        if name not in allowed:
            default = self._keys.default_permissions or ":read-only"
            if name is not None:
                self._notes.append(
                    f"Configured value for `permission_profile` is disallowed by requirements; falling back from"
                    f" `{name}` to required value `{default}` (set by {self._file.path})"
                )
            self._force(default_permissions=default)
        modes: set[SandboxMode] = {"read-only"}
        modes.update(BUILT_IN[name] for name in allowed if name in BUILT_IN)
        chosen, _ = chosen_permissions(self._layers)
        if chosen is not None:
            modes.add(chosen)
        return modes

    def _own_profiles(self) -> dict[str, dict[str, Any]]:
        """Return the tables of the profiles that the file defines."""
        own: dict[str, dict[str, Any]] = {}
        for name, table in raw(self._keys.permissions).items():
            if name != "filesystem":
                entries = _in_homes(table.get("filesystem", {}))
                own[name] = {**table, "filesystem": entries}
        return own

    def _require_no_profile(self, own: Mapping[str, Any]) -> None:
        """Raise a `ConfigError` if the file has profiles; it does not list the allowed ones."""
        text = "needs `allowed_permission_profiles`"
        for name in own:
            raise _mistake(self._file, ("permissions", name), text)
        if self._keys.default_permissions is not None:
            raise _mistake(self._file, ("default_permissions",), text)

    def _require_known_profiles(
        self,
        own: Mapping[str, Mapping[str, Any]],
        allowed: Collection[str],
    ) -> None:
        """Raise a `ConfigError` unless all profiles are defined, and the default is allowed."""
        key = ("allowed_permission_profiles",)
        names = list(self._keys.allowed_permission_profiles)
        names += [table.get("extends", ":workspace") for table in own.values()]
        for name in names:
            if name not in BUILT_IN and name not in own:
                text = f"refers to undefined profile `{name}`"
                raise _mistake(self._file, key, text)
        default = self._keys.default_permissions
        if default:
            has_default = default in allowed
        else:
            # Without a default, both of these must be allowed.
            has_default = {":workspace", ":read-only"} <= {*allowed}
        if not has_default:
            text = "`default_permissions` must name one of them"
            raise _mistake(self._file, key, text)

    def _asked_profile(self) -> str | None:
        """Return the profile that the layers choose; a sandbox mode counts as a built-in one."""
        name, decides = chosen_profile(self._layers)
        mode = self._layers.merged().get("sandbox_mode")
        if decides or mode is None:
            return name
        return next(built_in for built_in in BUILT_IN if BUILT_IN[built_in] == mode)

    def _hold_mode(
        self,
        allowed: Sequence[SandboxMode],
        asked: Any,
        approvals: Sequence[str],
    ) -> None:
        """Force an allowed sandbox mode.

        Args:
            asked: the configured approval policy.
            approvals: the allowed policies; empty: all are allowed.

        Raises:
            ConfigError: the user asks for full access without approvals, and only one is allowed.
        """
        mode, _ = chosen_permissions(self._layers)
        if mode == _FULL and asked == "never":
            never = '`approval_policy = "never"`'
            full = f'`sandbox_mode = "{_FULL}"`'
            if mode not in allowed:
                raise self._conflict(never, full, self._setter("sandbox_mode", mode))
            if approvals and asked not in approvals:
                setter = self._setter("approval_policy", asked)
                raise self._conflict(full, never, setter)
        if mode is not None and mode not in allowed:
            self._fall_back("sandbox_mode", mode, ["read-only"])

    def _conflict(
        self,
        used: str,
        refused: str,
        setter: Path | None,
    ) -> ConfigError:
        text = f"{used} cannot be used because requirements do not allow {refused}"
        return ConfigError(f"{text} (set by {setter})")


def _without_profiles(layer: Layer, names: Collection[str]) -> Layer:
    """Return the layer without the profiles of these names."""
    tables = layer.values.get("permissions", {})
    if not tables:
        return layer
    kept = {name: table for name, table in tables.items() if name not in names}
    return replace(layer, values={**layer.values, "permissions": kept})


def _in_homes(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Add each entry below `~` a second time, for the home in the password database.

    A user can choose `$HOME`, but not that one.
    """
    own = str(user_home({}))
    found: dict[str, Any] = {}
    for name, access in entries.items():
        found[name] = access
        if name.startswith("~/"):
            found[own + name[1:]] = access
    return found


def _check(file: Layer) -> None:
    """Raise a `ConfigError` for the first mistake in the file."""
    for problem in problems(file.values, RequirementKeys):
        raise _mistake(file, problem.key, problem.text)
    keys = RequirementKeys(file.values)
    for name, server in keys.mcp_servers.items():
        if not raw(server.identity):
            text = "needs an `identity`: `command` or `url`"
            raise _mistake(file, ("mcp_servers", name), text)
    for number, rule in enumerate(keys.rules.prefix_rules or ()):
        key = ("rules", "prefix_rules", str(number))
        words = rule.pattern or ()
        if not words or not all(len(raw(word)) == 1 for word in words):
            text = "needs a `pattern`: words with `token` or `any_of`"
            raise _mistake(file, key, text)
        if rule.decision is None or any(word.any_of == () for word in words):
            raise _mistake(file, key, "needs a `decision`, and words in `any_of`")


def _mistake(
    file: Layer,
    key: KeyPath,
    text: str,
) -> ConfigError:
    """Make an error about a key, with its place. `text` continues the name of the key."""
    where = file.where(key)
    return ConfigError(
        f"failed to parse requirements layer {where}: `{dotted(key)}` {text}"
    )
