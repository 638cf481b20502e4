import subprocess
import sys
import time

import pytest

from codex_py.errors import PatchError
from codex_py.patch.formats import Detected, detect

ENVELOPE = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"
DIFF = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENVELOPE, Detected("envelope", ENVELOPE, "an envelope")),
        (f"Sure:\n```\n{ENVELOPE}```\n", "an envelope in other text"),
        (DIFF, Detected("unified", DIFF, "a unified diff")),
        (
            f"Index: f\n{DIFF}",
            Detected("unified", f"Index: f\n{DIFF}", "a unified diff"),
        ),
        (
            f"Do:\n```diff\n{DIFF}```\nok?",
            Detected("unified", DIFF, "a unified diff in a fenced block"),
        ),
        (
            "1. Do:\n   ```diff\n   --- a/f\n   +++ b/f\n   @@ -1 +1 @@\n   -a\n   +b\n   ```\n",
            Detected("unified", DIFF, "a unified diff in a fenced block"),
        ),
        (f"```sh\nls\n```\n{DIFF}", "a unified diff"),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "a unified diff"),
        (
            DIFF + "@@ -9,2 +9,2 @@\n *** Begin Patch\n-x\n+y\n",
            "a unified diff",
        ),
        (f"Subject: Fix\n\n{ENVELOPE}\n---\n{DIFF}", "a unified diff behind a message"),
        (
            f"From {'1' * 40} Mon Sep 17 00:00:00 2001\nFrom: x\n\n{ENVELOPE}\n{DIFF}",
            "a unified diff behind a message",
        ),
        (
            f"commit {'a' * 40}\nAuthor: x\n\n{ENVELOPE}\n{DIFF}",
            "a unified diff behind a message",
        ),
        (f"Subject: Fix\n\n{ENVELOPE}", "an envelope in other text"),
        (
            "*** Begin Patch\n*** Update File: f\n@@\n--- a\n+++ b\n*** End Patch",
            "an envelope",
        ),
    ],
)
def test_the_patch_is_found(text: str, expected: Detected | str):
    detected = detect(text)
    assert expected in (detected, detected.found)
    from_bytes = detect(text.encode())
    assert (from_bytes.kind, from_bytes.text) == (detected.kind, detected.text)
    assert from_bytes.found == detected.found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hello",
            "it has neither '*** Begin Patch' nor the headers of a unified diff in it",
        ),
        ("@@ -1 +1 @@\n-a\n+b\n", "it has hunks, but no names of files"),
        (f"{DIFF}{ENVELOPE}", "it has both an envelope and a unified diff in it"),
        (f"x\n{ENVELOPE}\n{ENVELOPE}", "it has several envelopes in it"),
        (
            f"```\n{DIFF}```\n```\n{DIFF}```\n",
            "several fenced blocks have unified diffs in them",
        ),
    ],
)
def test_text_that_is_no_single_patch_is_refused(text: str, message: str):
    with pytest.raises(PatchError) as caught:
        detect(text)
    assert caught.value.kind == "parse"
    assert f"no patch can be read from this: {message}" in str(caught.value)


def test_fences_inside_a_diff_do_not_end_its_block():
    diff = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n ```\n-a\n+b\n ```\n"
    assert detect(f"Do:\n```diff\n{diff}```\n").text == diff
    assert detect(f"Do:\n{diff}").found == "a unified diff"


def test_a_long_diff_is_recognised_in_linear_time():
    text = (
        "Do:\n"
        + DIFF
        + "".join(f"@@ -{n} +{n} @@\n ```\n-a\n+b\n" for n in range(50_000))
    )
    started = time.process_time()
    assert detect(text).kind == "unified"
    assert time.process_time() - started < 2


def test_blank_input_is_an_empty_patch():
    with pytest.raises(PatchError) as caught:
        detect(" \n\n")
    assert caught.value.kind == "empty"


def test_only_a_diff_may_be_other_than_utf_8():
    assert detect(DIFF.encode().replace(b"-a", b"-\xe9")).text == DIFF.replace(
        "-a", "-\udce9"
    )
    with pytest.raises(PatchError, match="an envelope must be UTF-8"):
        detect(ENVELOPE.encode().replace(b"a\n", b"\xe9\n"))


def test_an_envelope_is_applied_without_the_modules_for_diffs():
    script = (
        "import sys, codex_py.patch.formats, codex_py.patch.envelope.apply\n"
        "print(sorted({'unidiff', 'codex_py.patch.unified.hunks'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert done.stdout == "[]\n"
