"""Whatever the files are, a diff of them makes one of the other, byte for byte, and back."""

from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from codex_py.errors import PatchError
from codex_py.patch.convert import to_envelope
from codex_py.patch.diff.writer import exact_diff
from codex_py.patch.envelope.apply import plan_patch
from codex_py.patch.unified.apply import apply_hunks
from codex_py.patch.unified.plan import plan_unified
from codex_py.patch.unified.reader import read_diff
from codex_py.protocol.patched_file import PatchedFile
from tests.patch.trees import commit_tree, git, git_diff, tree, write

LINES = st.sampled_from(
    [
        *(
            b"\n",
            b"a\n",
            b"b\n",
            b"  a\n",
            b"a \n",
            b"a\r\n",
            b"\r\n",
            b"\r",
            b"\xff\xfe\n",
        ),
        *(
            b"-- a/x\n",
            b"++ b/x\n",
            b"@@ -1 +1 @@\n",
            b"\\ No newline\n",
            b"\xc3\xa9\x85\x0c\n",
        ),
        *(b"diff --git a/x b/x\n", b"*** End Patch\n", b"\0\n"),
    ]
)
CONTENTS = st.tuples(
    st.lists(LINES, max_size=25), st.sampled_from([b"", b"", b"end"])
).map(lambda parts: b"".join(parts[0]) + parts[1])
NAMES = st.sampled_from(
    ["a", "b", "d/a", "d/b c", "d/é", 'q"\\', " x", "a b/c b/d", "t\tt"]
)
TREES = st.dictionaries(NAMES, CONTENTS, max_size=4).filter(
    lambda files: not {"a", "a b/c b/d"} <= set(files)
)
ROOT = Path("/p")
thorough = settings(max_examples=150, deadline=None, database=None)
# Each of these starts git half a dozen times.
costly = settings(max_examples=25, deadline=None, database=None)


@thorough
@given(CONTENTS, CONTENTS, st.integers(0, 4))
def test_our_own_diff_makes_the_new_file_of_the_old_one(
    old: bytes, new: bytes, context: int
):
    diff = exact_diff(
        [PatchedFile(ROOT / "f", "update", None, old, new)], ROOT, context
    )
    (file,) = read_diff(diff)
    applied = apply_hunks(old, file.hunks, "/p/f", strict=True)
    assert (applied.data, applied.failures) == (new, [])
    backwards = apply_hunks(new, file.reversed().hunks, "/p/f", strict=True)
    assert (backwards.data, backwards.failures) == (old, [])
    assert vars(file.reversed().reversed()) == vars(file)
    for hunk in file.hunks:
        # git takes a hunk that ends in a change for the end of the file.
        ends_file = hunk.at + len(hunk.old) == len(list(BytesIO(old)))
        assert hunk.trailing == context or ends_file


@thorough
@given(CONTENTS, CONTENTS, CONTENTS)
def test_lines_that_no_hunk_names_stay_wherever_it_goes(
    old: bytes, new: bytes, other: bytes
):
    diff = exact_diff([PatchedFile(ROOT / "f", "update", None, old, new)], ROOT)
    (file,) = read_diff(diff)
    applied = apply_hunks(other, file.hunks, "/p/f", strict=False)
    if len(applied.failures) == len(file.hunks):
        assert applied.data == other
    strict = apply_hunks(other, file.hunks, "/p/f", strict=True)
    for report in strict.reports:
        assert not (report.fuzz)
        assert not (report.level)


@costly
@given(TREES, TREES)
def test_a_diff_of_git_makes_the_new_tree_of_the_old_one(
    old: dict[str, bytes], new: dict[str, bytes]
):
    with TemporaryDirectory() as directory:
        root, work = Path(directory, "root"), Path(directory, "work")
        write(root, old)
        first = commit_tree(root)
        git(root, "rm", "-rqf", "--ignore-unmatch", ".")
        write(root, new)
        diff = git_diff(root, first, commit_tree(root))
        write(work, old)
        before = tree(work)
        if not diff:
            return
        plan = plan_unified(diff, work, strict=True)
        again = exact_diff(plan.changes, work)
        plan.commit()
        assert tree(work) == new
        plan_unified(diff, work, reverse=True, strict=True).commit()
        assert tree(work) == before
        if again:
            git(work, "apply", "--whitespace=nowarn", "-", stdin=again)
        assert tree(work) == new


@costly
@given(TREES, TREES)
def test_an_envelope_made_of_a_diff_does_the_same_or_is_refused(
    old: dict[str, bytes], new: dict[str, bytes]
):
    with TemporaryDirectory() as directory:
        work = Path(directory, "work")
        write(work, old)
        names = sorted({*old, *new})
        changes = [
            PatchedFile(
                work / name,
                "update",
                None,
                old.get(name),
                new.get(name),
                old_mode=0o100644 if name in old else None,
                new_mode=0o100644 if name in new else None,
            )
            for name in names
            if old.get(name) != new.get(name)
        ]
        diff = exact_diff(changes, work).decode(errors="surrogateescape")
        if not diff:
            return
        try:
            envelope, reason = to_envelope(diff, work), None
        except PatchError as error:
            envelope, reason = "", error.reason
        if reason is not None:
            assert "an envelope cannot say" in reason
            return
        plan_patch(envelope, work).commit()
        assert tree(work) == new


@costly
@given(TREES, st.dictionaries(NAMES, CONTENTS, min_size=1, max_size=3), st.booleans())
def test_a_patch_that_fails_changes_nothing(
    files: dict[str, bytes], others: dict[str, bytes], reverse: bool
):
    diff = exact_diff(
        [
            PatchedFile(ROOT / n, "update", None, d, d + b"more\n")
            for n, d in others.items()
        ],
        ROOT,
    )
    with TemporaryDirectory() as directory:
        work = Path(directory, "work")
        write(work, files)
        before = tree(work)
        try:
            plan_unified(diff, work, reverse=reverse)
        except PatchError:
            assert tree(work) == before
