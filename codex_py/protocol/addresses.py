"""Removes possible secrets from URLs. Every URL in a message or a listing goes through here."""

import re

_SECRETS = re.compile(r"(?:(?<=://)|^(?!\w+://))[^/?#\s]*@|[?#]\S*")
"""The user info, the query and the fragment. The URL may lack a scheme, as that of a proxy."""


def shown_url(url: str) -> str:
    """Return the URL without the parts that may be secret."""
    return _SECRETS.sub("", url)
