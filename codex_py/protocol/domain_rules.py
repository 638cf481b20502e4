"""The hosts that commands may reach, from permission profiles and other settings. LIGHT."""

from dataclasses import replace

from codex_py.protocol.frozen import frozen


@frozen
class DomainRules:
    """Patterns as `protocol.hosts.pattern` returns them. Hosts need a pattern that allows them;
    denials win."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    """The patterns of `allow` that commands without network access may reach, too."""
    is_limited: bool = False
    """True: allow only requests that change nothing, GET, HEAD and OPTIONS, and no encrypted
    connections."""
    allows_local: bool = False
    """An allowed name may have an address of this machine or of a private network."""
    is_required: bool = False
    """True: the rules are the administrator's, and hold outside of the sandbox too."""
    is_closed: bool = False
    """True: the user cannot allow more hosts."""
    may_be_unenforced: bool = False
    """Commands have the whole network where no sandbox backend can restrict it."""

    def plus(
        self, allow: tuple[str, ...] = (), deny: tuple[str, ...] = ()
    ) -> "DomainRules":
        return replace(
            self,
            allow=tuple(dict.fromkeys((*self.allow, *allow))),
            deny=tuple(dict.fromkeys((*self.deny, *deny))),
        )
