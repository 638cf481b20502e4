"""JSON of others, which is checked before it is used.

`read` makes an object of a class by its annotations, and returns the `Mistake`s that it found.
`unique_fields` is an `object_pairs_hook` that raises `RepeatedKey`. `encode_json` writes one line that
every reader takes.
"""

from codex_py.protocol.checked import Mistake, read
from codex_py.protocol.json_fields import RepeatedKey, unique_fields
from codex_py.protocol.messages import encode_json

__all__ = ["Mistake", "RepeatedKey", "encode_json", "read", "unique_fields"]
