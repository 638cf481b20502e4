"""URLs in the configuration and in messages.

`url_problem` says why a URL cannot be that of a server. A message names a URL by `shown_url` alone,
which leaves out what may be secret.
"""

from codex_py.protocol.addresses import shown_url, url_problem

__all__ = ["shown_url", "url_problem"]
