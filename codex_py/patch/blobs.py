"""Computes the names that git gives contents."""

_HASHES = {40: "sha1", 64: "sha256"}
"""The hash of a name, by the number of its hexadecimal digits."""
NAME_LENGTHS = frozenset(_HASHES)


def blob_name(data: bytes, length: int) -> str:
    """Return the name that git gives contents, in hexadecimal.

    Args:
        length: the length of the name that this one is compared with. If no name has that length,
            the result has 40 characters, so that the two are not equal.
    """
    import hashlib  # 2 ms, which few patches need

    algorithm = _HASHES.get(length, "sha1")
    hashed = hashlib.new(algorithm, usedforsecurity=False)
    hashed.update(b"blob %d\0" % len(data))
    hashed.update(data)
    return hashed.hexdigest()
