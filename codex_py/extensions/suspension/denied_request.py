"""Takes the file of a request out of the values of `--deny`. LIGHT."""

import re


def denied_request(value: str) -> str | None:
    """Return the word in place of a value of `--deny` that is the file of a request."""
    if re.search(r"(?:^|/)approval-[0-9a-f]+\.json$", value):
        return f"--deny-request={value}"
    return None
