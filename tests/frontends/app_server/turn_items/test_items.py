"""Items in the shape of Codex."""

from codex_py.frontends.app_server.turn_items.items import shown_item
from codex_py.protocol.event_items import Change, FileChange

MOVED = """\
diff --git a/old/a.txt b/new/b.txt
similarity index 50%
rename from old/a.txt
rename to new/b.txt
--- a/old/a.txt
+++ b/new/b.txt
@@ -1,2 +1,2 @@
 same
-x
+y
"""


def test_a_file_that_moves_to_another_folder_names_its_new_place() -> None:
    item = FileChange(
        id="i", changes=[Change(path="/repo/old/a.txt", kind="update")], diff=MOVED
    )
    assert (shown_item(item, "1", "/repo") or {})["changes"] == [
        {
            "path": "/repo/old/a.txt",
            "kind": {"type": "update", "move_path": "/repo/new/b.txt"},
            "diff": MOVED[MOVED.index("@@") :],
        }
    ]


def test_a_patch_that_does_not_fit_says_nothing_of_the_files_it_would_add() -> None:
    item = FileChange(
        id="i",
        changes=[
            Change(path="/repo/a.txt", kind="update"),
            Change(path="/repo/b.txt", kind="add"),
        ],
        status="failed",
    )
    update = {"type": "update", "move_path": None}
    assert (shown_item(item, "1", "/repo") or {})["changes"] == [
        {"path": "/repo/a.txt", "kind": update, "diff": ""}
    ]
