"""Holds the rules for the hosts that commands may reach. LIGHT."""

from dataclasses import replace

from codex_py.protocol.frozen import frozen


@frozen
class DomainRules:
    """The hosts that commands may reach, from permission profiles and other settings.

    A host is allowed if a pattern of `allow` matches it, and none of `deny` does. All patterns have
    the form that `protocol.hosts.pattern` returns.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    """Those patterns of `allow` that also hold for commands without network access."""
    is_limited: bool = False
    """True: allow only requests that change nothing (GET, HEAD, OPTIONS), and only unencrypted."""
    allows_local: bool = False
    """True: an allowed name may have an address of this machine or of a private network."""
    is_required: bool = False
    """True: the rules are the administrator's, and hold outside of the sandbox too."""
    is_closed: bool = False
    """True: the user cannot allow more hosts."""
    may_be_unenforced: bool = False
    """True: if no sandbox backend can restrict the network, commands have all of it."""

    def plus(
        self, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()
    ) -> "DomainRules":
        """Return the rules with further patterns, each pattern once."""
        all_allowed = dict.fromkeys((*self.allow, *allow))
        all_denied = dict.fromkeys((*self.deny, *deny))
        return replace(self, allow=tuple(all_allowed), deny=tuple(all_denied))
