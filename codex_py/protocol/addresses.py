"""Removes possible secrets from addresses. Every address in a message or a listing goes through
here."""

import re

_SECRETS = re.compile(r"(?:(?<=://)|^(?!\w+://))[^/?#\s]*@|[?#]\S*")
"""The user info, query and fragment. The address of a proxy may have no scheme."""


def shown_url(url: str) -> str:
    return _SECRETS.sub("", url)
