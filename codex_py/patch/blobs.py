"""The names that git gives contents."""

_HASHES = {40: "sha1", 64: "sha256"}
NAME_LENGTHS = frozenset(_HASHES)


def blob_name(data: bytes, length: int) -> str:
    """The name that git gives contents, of 40 or 64 characters; SHA-1 for other lengths, so that nothing equals it."""
    import hashlib  # 2 ms, which few patches need

    found = hashlib.new(
        _HASHES.get(length, "sha1"), b"blob %d\0" % len(data), usedforsecurity=False
    )
    found.update(data)
    return found.hexdigest()
