"""The hosts that commands may reach, as permission profiles and other settings say. LIGHT."""

from dataclasses import replace

from codex_py.protocol.frozen import frozen


@frozen
class DomainRules:
    """Patterns as `protocol.hosts.pattern` returns them. What no pattern allows is not reached; denials win."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    """Those of `allow` that commands without a network may reach, too."""
    is_limited: bool = False
    """Only requests that change nothing: GET, HEAD and OPTIONS, and nothing that is encrypted."""
    allows_local: bool = False
    """An allowed name may have an address of this machine or of a private network."""
    is_required: bool = False
    """The administrator's: they hold outside of the sandbox too."""
    is_closed: bool = False
    """The user cannot allow more."""
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
