"""Checks URLs of servers, and removes possible secrets from URLs.

Every URL in a message or a listing goes through `shown_url`.
"""

import re
from urllib.parse import urlsplit

_SECRETS = re.compile(r"(?:(?<=://)|^(?!\w+://))[^/?#\s]*@|[?#]\S*")
"""The user info, the query and the fragment. The URL may lack a scheme, as that of a proxy."""


def shown_url(url: str) -> str:
    """Return the URL without the parts that may be secret."""
    return _SECRETS.sub("", url)


def url_problem(url: str) -> str | None:
    """The reason why a server cannot have this URL, as a clause; None if it can."""
    if not url.startswith(("http://", "https://")):
        return f"must begin with http:// or https://, not {url!r}"
    try:
        parts = urlsplit(url)
        # Accessing the port checks it.
        is_complete = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete or not url.isprintable() or " " in url:
        return f"is no URL of a server: {url!r}"
    return None
