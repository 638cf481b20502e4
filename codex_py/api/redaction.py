"""Texts without keys, for what leaves the machine.

A `Redactor` replaces each key in a text by `[redacted]`: the user's own, and text in the well-known form
of one. It counts them, and `Redactor.notes` says so in a sentence. `map_texts` applies it, or any other
function, to every text in a value.
"""

from codex_py.app.redaction import REDACTED, Redactor, map_texts

__all__ = ["REDACTED", "Redactor", "map_texts"]
