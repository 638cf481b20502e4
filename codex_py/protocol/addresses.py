"""How addresses are shown: without what may be secret. Every message and listing that has one goes through here."""

import re

_SECRETS = re.compile(r"(?:(?<=://)|^(?!\w+://))[^/?#\s]*@|[?#]\S*")
"""User info, query and fragment. A proxy may be without a scheme."""


def shown_url(url: str) -> str:
    return _SECRETS.sub("", url)
