"""Thread ids and time stamps, under the name by which the core knows them."""

from codex_py.protocol.ids import is_thread_id, new_thread_id, utc_timestamp

__all__ = ["is_thread_id", "new_thread_id", "utc_timestamp"]
