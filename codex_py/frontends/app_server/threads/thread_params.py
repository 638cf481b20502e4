"""The params of the methods about threads that are loaded, and about their histories."""

from typing import Any, Literal

from codex_py.frontends.app_server.params import Count, OneThread, Params
from codex_py.protocol.frozen import frozen


@frozen(kw_only=True)
class LoadedList(Params):
    cursor: str | None = None
    limit: Count | None = None


@frozen(kw_only=True)
class _Page(OneThread):
    """A page of the history of a thread."""

    limit: Count = 25


@frozen(kw_only=True)
class TurnsList(_Page):
    cursor: str | None = None
    items_view: Literal["notLoaded", "summary", "full"] = "summary"
    sort_direction: Literal["asc", "desc"] = "desc"


@frozen(kw_only=True)
class ItemAnchor(Params):
    """The place of an item in a turn. The item itself is not in the page."""

    type: Literal["item"]
    item_id: str


@frozen(kw_only=True)
class ItemsList(_Page):
    cursor: str | ItemAnchor | None = None
    sort_direction: Literal["asc", "desc"] = "asc"
    turn_id: str | None = None


@frozen(kw_only=True)
class InjectItems(OneThread):
    items: list[Any]


@frozen(kw_only=True)
class Revert(OneThread):
    before_turn_id: str


@frozen(kw_only=True)
class ShellCommand(OneThread):
    command: str
    timeout_ms: int = 3_600_000


@frozen(kw_only=True)
class UncommittedChanges(Params):
    type: Literal["uncommittedChanges"]


@frozen(kw_only=True)
class BaseBranch(Params):
    type: Literal["baseBranch"]
    branch: str


@frozen(kw_only=True)
class Commit(Params):
    type: Literal["commit"]
    sha: str
    title: str | None = None


@frozen(kw_only=True)
class CustomReview(Params):
    type: Literal["custom"]
    instructions: str


@frozen(kw_only=True)
class ReviewStart(OneThread):
    target: UncommittedChanges | BaseBranch | Commit | CustomReview
    delivery: Literal["inline"] = "inline"


@frozen(kw_only=True)
class MetadataUpdate(OneThread):
    git_info: dict[str, str | None] | None = None
    """A value of None removes what is stored."""
