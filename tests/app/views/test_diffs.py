from codex_py.app.views.diffs import DiffLine, ShownFile, read_diff


def test_lines_have_the_numbers_of_the_file_they_are_in() -> None:
    diff = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -8,3 +9,3 @@ def g\n a\n-b\n+c\n\n@@ -90 +91 @@\n-x\n+y\n"
    lines = [
        *(DiffLine(" ", "a", 9, 8), DiffLine("-", "b", 9), DiffLine("+", "c", 10)),
        *(DiffLine(" ", "", 11, 10), DiffLine("@", "")),
        *(DiffLine("-", "x", 90), DiffLine("+", "y", 91)),
    ]
    assert read_diff(diff) == [ShownFile("f", lines=lines)]


def test_lines_that_look_like_headers_are_lines() -> None:
    diff = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,1 @@\n--- a/x\n-diff --git a/y b/y\n+++ z\n"
    (file,) = read_diff(diff)
    assert [line.text for line in file.lines] == [
        "-- a/x",
        "diff --git a/y b/y",
        "++ z",
    ]


def test_files_are_named_as_git_names_them() -> None:
    diff = (
        'diff --git "a/caf\\303\\251 \\"1\\"" "b/caf\\303\\251 \\"1\\""\nnew file mode 100644\n'
        "--- /dev/null\n"
        '+++ "b/caf\\303\\251 \\"1\\""\n@@ -0,0 +1 @@\n+x\n'
        "diff --git a/old b/new\nrename from old\nrename to new\n"
        "diff --git a/a b/b b/a b/b\ndeleted file mode 100644\n"
    )
    assert [(f.verb, f.path, f.moved_to) for f in read_diff(diff)] == [
        ("Added", 'café "1"', ""),
        ("Renamed", "old", "new"),
        ("Deleted", "a b/b", ""),
    ]


def test_an_envelope_is_read_as_well() -> None:
    patch = (
        "*** Begin Patch\n*** Add File: a\n+x\n+y\n*** Update File: b\n*** Move to: c\n@@ def f\n k\n"
        "-x\n@@\n+y\n*** Delete File: d\n*** End Patch\n"
    )
    update = [
        DiffLine(" ", "k"),
        DiffLine("-", "x"),
        DiffLine("@", ""),
        DiffLine("+", "y"),
    ]
    assert read_diff(patch) == [
        ShownFile("a", "Added", lines=[DiffLine("+", "x", 1), DiffLine("+", "y", 2)]),
        ShownFile("b", "Renamed", "c", update),
        ShownFile("d", "Deleted"),
    ]


def test_text_that_is_no_diff_has_no_files() -> None:
    assert read_diff("") == []
    assert read_diff("hello\n@@ -1 +1 @@\n") == []


def test_a_diff_that_is_cut_short_is_shown_as_far_as_it_goes() -> None:
    diff = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n@@ -9,2 +9,2 @@\n x\n-y\n+z\n"
    shown = [DiffLine("-", "a", 1), DiffLine("+", "b", 1)]
    for end in range(diff.index("@@ -9"), len(diff)):
        (file,) = read_diff(diff[:end])
        assert file.lines[:2] == shown
    assert read_diff(diff[:-1])[0].lines[2:] == [
        *(DiffLine("@", ""), DiffLine(" ", "x", 9, 9), DiffLine("-", "y", 10))
    ]
