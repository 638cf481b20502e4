import uuid

from codex_py.protocol.ids import is_thread_id, new_thread_id, utc_timestamp


def test_thread_ids_are_uuids_of_version_seven() -> None:
    parsed = uuid.UUID(thread_id := new_thread_id())
    assert (parsed.version, parsed.variant, str(parsed)) == (
        7,
        uuid.RFC_4122,
        thread_id,
    )


def test_thread_ids_made_in_turn_sort_by_their_millisecond() -> None:
    ids = [new_thread_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert [i[:13] for i in ids] == sorted(i[:13] for i in ids)


def test_an_id_is_told_from_a_name() -> None:
    assert is_thread_id("5973B6C0-94B8-487B-A530-2AEB6098AE0E")
    assert not is_thread_id("my session")
    assert not is_thread_id(new_thread_id() + "\n")


def test_timestamps_carry_milliseconds_and_a_z() -> None:
    stamp = utc_timestamp()
    assert (len(stamp), stamp[10], stamp[19], stamp[-1]) == (24, "T", ".", "Z")
