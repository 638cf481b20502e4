"""JSON of others, which is checked before it is used.

`read` makes an object of a class by its annotations, and returns the `Mistake`s that it found.
`as_object`, `json_object` and `text_field` read what may have any form. `unique_fields` is an
`object_pairs_hook` that raises `RepeatedKey`. `encode_json` writes one line that every reader takes, and
`decode_json` reads what others wrote. `plain_data` makes an object of a dataclass ready for it: fields with
`metadata={"json": False}` are left out.
"""

from codex_py.protocol.checked import Mistake, read
from codex_py.protocol.event_data import plain_data
from codex_py.protocol.json_fields import (
    RepeatedKey,
    as_object,
    json_object,
    text_field,
    unique_fields,
)
from codex_py.protocol.messages import decode_json, encode_json

__all__ = [
    "Mistake",
    "RepeatedKey",
    "as_object",
    "decode_json",
    "encode_json",
    "json_object",
    "plain_data",
    "read",
    "text_field",
    "unique_fields",
]
