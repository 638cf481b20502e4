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
        """The policy as far as it is allowed; for a forbidden mode, one that allows no changes."""
        if policy.mode not in self.modes:
            policy = policy.locked()
        if (
            self.profile != policy.profile
            and self.profile
            and policy.mode not in self.plain
        ):
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
        if self.domains is None:
            return policy
        domains = self.domains
        own = policy.domains
        if own is not None:
            if domains.is_closed or not policy.network_access:
                allow = ()
            else:
                allow = own.allow
            domains = replace(
                domains.plus(allow, own.deny),
                is_limited=own.is_limited,
                allows_local=domains.allows_local
                or (own.allows_local and not domains.is_closed),
            )
        has_network = policy.network_access or policy.mode == "workspace-write"
        return replace(policy, network_access=has_network, domains=domains)

    def held_choices(self, choices: Choices) -> Choices:
        """The choices as far as they are allowed, with allowed values in place of others."""
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
        notes = list[str]()
        for name, server in servers.items():
            is_same = name in allowed and _is_same(server, allowed[name].identity)
            if server.enabled and not is_same:
                found[name] = replace(server, enabled=False, required=False)
                notes.append(
                    f"MCP server `{name}` is disabled by requirements (set by {self.file.path})."
                )
        return found, tuple(notes)


def _is_same(server: McpServerConfig, identity: ServerIdentity) -> bool:
    wanted = raw(identity)
    return bool(wanted) and all(getattr(server, key) == wanted[key] for key in wanted)


def required(layers: Layers) -> tuple[Layers, Requirements]:
    """The layers with those that the administrator forces on top, and the requirements.

    Raises:
        ConfigError: the file cannot be used, or it forbids a requested value without a fall-back.
    """
    path = layers.system / "requirements.toml"
    text = read_text(path)
    managed = next((layer for layer in layers.layers if layer.name == "managed"), None)
    # These keys of `managed_config.toml` count as requirements.
    if text is None and not (
        managed and {"sandbox_mode", "approval_policy"} & {*managed.values}
    ):
        return layers, Requirements()
    file = Layer(
        "requirements", {} if text is None else parse_toml(text, path), path, text or ""
    )
    _check(file)
    return _Required(layers, file, managed).result()


_LISTS: Final = (
    ("web_search", "allowed_web_search_modes", "cached", ("disabled",)),
    ("approvals_reviewer", "allowed_approvals_reviewers", "user", ()),
)
"""Settings, the lists of their allowed values, their defaults, and the values that are always allowed."""


class _Required:
    def __init__(
        self,
        layers: Layers,
        file: Layer,
        managed: Layer | None,
    ) -> None:
        self._layers = layers
        self._file = file
        self._values = file.values
        self._keys = RequirementKeys(file.values)
        self._managed: Mapping[str, Any] = {} if managed is None else managed.values
        if managed is None:
            self._managed_path = None
        else:
            self._managed_path = managed.path
        self._notes: list[str] = []

    def result(self) -> tuple[Layers, Requirements]:
        features = self._features()
        policy = self._keys.guardian_policy_config
        hooks = {
            event: groups
            for event, groups in raw(self._keys.hooks).items()
            if event in HOOK_EVENTS
        }
        self._force(
            features=features, hooks=hooks, auto_review=policy and {"policy": policy}
        )
        if features.get("plugins") is False:
            layers = tuple(
                layer for layer in self._layers.layers if layer.name != "plugin"
            )
            self._layers = replace(self._layers, layers=layers, plugins=())
        self._servers()
        merged = self._layers.merged()
        for key, name, default, always in _LISTS:
            allowed = self._values.get(name)
            if allowed is None:
                continue
            if {*_REVIEWERS}.isdisjoint(allowed):
                same = ()
            else:
                same = _REVIEWERS
            allowed = list(dict.fromkeys((*allowed, *same, *always)))
            if not allowed:
                raise _mistake(self._file, (name,), "names no value")
            if merged.get(key, default) not in allowed:
                self._fall_back(key, merged.get(key), allowed)
        files = self._denied()
        asked = merged.get("approval_policy")
        approvals = self._approvals()
        of_profiles = self._profiles()
        modes: list[SandboxMode] = [
            m
            for m in self._modes()
            if m in of_profiles and (m != _FULL or not files.denies)
        ]
        self._mode(modes, asked, approvals)
        if approvals and (asked or "on-request") not in approvals:
            self._fall_back("approval_policy", asked, approvals)
        listed = self._keys.allowed_permission_profiles
        name = ""
        rules = NO_RULES
        (_, profile) = chosen_permissions(self._layers)
        if listed and profile is not None and profile.decides:
            name = profile.name
            rules = profile.rules((self._layers.cwd, *profile.roots))
        return self._layers, Requirements(
            file=self._file,
            profile=name,
            profile_files=rules,
            plain=frozenset(
                mode for each, mode in BUILT_IN.items() if listed.get(each)
            ),
            modes=tuple(modes),
            approvals=tuple(approvals),
            files=files,
            domains=self._domains(),
            warnings=tuple(self._notes),
        )

    def _servers(self) -> None:
        """Disable servers that are not allowed, so that the configuration says so."""
        tables = self._layers.merged().get("mcp_servers", {})
        servers, _ = mcp_servers(
            tables, lambda name: self._layers.where(("mcp_servers", name))
        )
        held, notes = Requirements(file=self._file).held_servers(servers)
        self._notes += notes
        off = {"enabled": False, "required": False}
        self._force(
            mcp_servers={name: off for name in held if held[name] != servers[name]}
        )

    def _force(self, path: Path | None = None, **values: Any) -> None:
        """Put the values that are not empty into a layer above all others."""
        found = {key: value for key, value in values.items() if value}
        if found:
            layer = replace(self._file, values=found, path=path or self._file.path)
            self._layers = replace(self._layers, layers=(layer, *self._layers.layers))

    def _setter(self, key: str, asked: Any) -> Path | None:
        """The path of the file that forbids this value."""
        is_managed = key in self._managed and asked != self._managed[key]
        if is_managed:
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
        patterns = list(_in_homes(dict.fromkeys(patterns)))
        self._force(protection=patterns and {"deny": patterns})
        return denial_rules(patterns, key, (), self._layers.user_home)

    def _domains(self) -> DomainRules | None:
        key = "experimental_network"
        network = self._keys.experimental_network
        is_enabled = network.enabled
        if is_enabled is None:
            is_enabled = bool(raw(network))
        if not is_enabled:
            return None
        found: dict[str, list[str]] = {"allow": [], "deny": []}
        for text, access in network.domains.items():
            try:
                found[access].append(parsed(text, ()))
            except ConfigError as error:
                raise _mistake(
                    self._file, (key, "domains", text), str(error)
                ) from error
        return DomainRules(
            tuple(found["allow"]),
            tuple(found["deny"]),
            allows_local=network.allow_local_binding is True,
            is_required=True,
            is_closed=network.managed_allowed_domains_only is True,
        )

    def _approvals(self) -> list[str]:
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
        if managed in (allowed or (managed,)) and managed:
            return [managed]
        return list(allowed or ())

    def _modes(self) -> list[SandboxMode]:
        allowed = self._keys.allowed_sandbox_modes
        if allowed is None:
            allowed = get_args(SandboxMode)
        if "read-only" not in allowed:
            raise _mistake(
                self._file, ("allowed_sandbox_modes",), "must contain `read-only`"
            )
        managed = self._managed.get("sandbox_mode")
        return [m for m in allowed if managed is None or m in {"read-only", managed}]

    def _profiles(self) -> set[SandboxMode]:
        """Force an allowed permission profile. Returns the modes that allowed profiles can have."""
        listed = self._values.get("allowed_permission_profiles")
        own = {
            name: {**table, "filesystem": _in_homes(table.get("filesystem", {}))}
            for name, table in self._values.get("permissions", {}).items()
            if name != "filesystem"
        }
        default = self._keys.default_permissions
        if listed is None:
            if own or default is not None:
                if own:
                    key = ("permissions", *list(own)[:1])
                else:
                    key = ("default_permissions",)
                raise _mistake(self._file, key, "needs `allowed_permission_profiles`")
            return set(get_args(SandboxMode))
        allowed = [name for name, value in listed.items() if value]
        for name in (
            *listed,
            *(table.get("extends", ":workspace") for table in own.values()),
        ):
            if name not in BUILT_IN and name not in own:
                text = f"refers to undefined profile `{name}`"
                raise _mistake(self._file, ("allowed_permission_profiles",), text)
        if default not in allowed and (
            default or not {":workspace", ":read-only"} <= {*allowed}
        ):
            text = "`default_permissions` must name one of them"
            raise _mistake(self._file, ("allowed_permission_profiles",), text)
        # Profiles of the same names in other layers do not count.
        others = [_without_profiles(layer, own) for layer in self._layers.layers]
        self._layers = replace(self._layers, layers=tuple(others))
        self._force(permissions=own)
        name, decides = chosen_profile(self._layers)
        mode = self._layers.merged().get("sandbox_mode")
        if not decides and mode is not None:
            name = next(each for each, its in BUILT_IN.items() if its == mode)
        if name not in allowed:
            default = default or ":read-only"
            if name is not None:
                self._notes.append(
                    f"Configured value for `permission_profile` is disallowed by requirements; falling back from"
                    f" `{name}` to required value `{default}` (set by {self._file.path})"
                )
            self._force(default_permissions=default)
        modes: set[Any] = {"read-only"}
        modes.update(BUILT_IN[name] for name in allowed if name in BUILT_IN)
        chosen, _ = chosen_permissions(self._layers)
        if chosen:
            modes.add(chosen)
        return modes

    def _mode(
        self, allowed: Sequence[SandboxMode], asked: Any, approvals: Sequence[str]
    ) -> None:
        mode, _ = chosen_permissions(self._layers)
        if mode == _FULL and asked == "never":
            never = '`approval_policy = "never"`'
            full = f'`sandbox_mode = "{_FULL}"`'
            for used, refused, key, value, is_allowed in (
                (never, full, "sandbox_mode", mode, mode in allowed),
                (
                    full,
                    never,
                    "approval_policy",
                    asked,
                    "never" in (approvals or [asked]),
                ),
            ):
                if not is_allowed:
                    text = f"{used} cannot be used because requirements do not allow {refused}"
                    raise ConfigError(f"{text} (set by {self._setter(key, value)})")
        if mode is not None and mode not in allowed:
            self._fall_back("sandbox_mode", mode, ["read-only"])


def _without_profiles(layer: Layer, names: Collection[str]) -> Layer:
    tables = layer.values.get("permissions", {})
    kept = {name: table for name, table in tables.items() if name not in names}
    if tables:
        return replace(layer, values={**layer.values, "permissions": kept})
    return layer


def _in_homes(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries; those below `~` also for the home in the password database.

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
    for name, server in file.values.get("mcp_servers", {}).items():
        if not server.get("identity"):
            raise _mistake(
                file, ("mcp_servers", name), "needs an `identity`: `command` or `url`"
            )
    for number, rule in enumerate(file.values.get("rules", {}).get("prefix_rules", ())):
        key = ("rules", "prefix_rules", str(number))
        if not rule.get("pattern") or any(len(word) != 1 for word in rule["pattern"]):
            raise _mistake(
                file, key, "needs a `pattern`: words with `token` or `any_of`"
            )
        if "decision" not in rule or [] in (
            word.get("any_of") for word in rule["pattern"]
        ):
            raise _mistake(file, key, "needs a `decision`, and words in `any_of`")


def _mistake(
    file: Layer,
    key: KeyPath,
    text: str,
) -> ConfigError:
    where = file.where(key)
    return ConfigError(
        f"failed to parse requirements layer {where}: `{dotted(key)}` {text}"
    )
