"""What Codex 0.169 takes for a patch among the commands of a model, and what it leaves to the shell."""

import pytest

from codex_py.patch.envelope.shell import ShellPatch, find_patch, is_bare_patch

PATCH = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"


@pytest.mark.parametrize("name", ["apply_patch", "applypatch"])
def test_a_patch_as_argument_is_found(name: str):
    assert find_patch([name, PATCH]) == ShellPatch(PATCH, None)


@pytest.mark.parametrize("shell", ["bash", "sh", "zsh", "/bin/bash"])
@pytest.mark.parametrize("flag", ["-c", "-lc"])
def test_a_heredoc_in_any_shell_is_found(shell: str, flag: str):
    argv = [shell, flag, f"apply_patch <<'EOF'\n{PATCH}EOF"]
    assert find_patch(argv) == ShellPatch(PATCH, None)


@pytest.mark.parametrize(
    ("script", "workdir"),
    [
        (f"applypatch <<'WORD'\n{PATCH}WORD\n", None),
        (f'apply_patch <<"EOF"\n{PATCH}EOF\n\n', None),
        (f"apply_patch <<EOF\n{PATCH}EOF", None),
        (f"apply_patch << 'EOF'\n{PATCH}EOF", None),
        (f"\n\n  apply_patch <<'EOF'\n{PATCH}EOF", None),
        (f"X=1 apply_patch <<'EOF'\n{PATCH}EOF", None),
        (f"cd sub/dir && apply_patch <<'EOF'\n{PATCH}EOF\n", "sub/dir"),
        (f"cd 'a b' && apply_patch <<'EOF'\n{PATCH}EOF", "a b"),
        (f'cd "a b"&&apply_patch <<EOF\n{PATCH}EOF', "a b"),
    ],
)
def test_a_script_that_only_applies_a_patch_is_found(script: str, workdir: str | None):
    assert find_patch(["bash", "-lc", script]) == ShellPatch(PATCH, workdir)


def test_a_dashed_heredoc_loses_its_leading_tabs():
    script = "apply_patch <<-EOF\n\t*** Begin Patch\n\t*** Delete File: a\n\t*** End Patch\n\tEOF"
    assert find_patch(["bash", "-lc", script]) == ShellPatch(PATCH, None)


@pytest.mark.parametrize(
    "script",
    [
        f"cd x; apply_patch <<'EOF'\n{PATCH}EOF",
        f"cd x || apply_patch <<'EOF'\n{PATCH}EOF",
        f"cd x\napply_patch <<'EOF'\n{PATCH}EOF",
        f"cd x && cd y && apply_patch <<'EOF'\n{PATCH}EOF",
        f"cd x y && apply_patch <<'EOF'\n{PATCH}EOF",
        f"cd $HOME && apply_patch <<'EOF'\n{PATCH}EOF",
        f"cd ~ && apply_patch <<'EOF'\n{PATCH}EOF",
        f"cd - && apply_patch <<'EOF'\n{PATCH}EOF",
        f"echo hi && apply_patch <<'EOF'\n{PATCH}EOF",
        f"set -e\napply_patch <<'EOF'\n{PATCH}EOF",
        f"# note\napply_patch <<'EOF'\n{PATCH}EOF",
        f"apply_patch <<'EOF' && echo done\n{PATCH}EOF",
        f"apply_patch <<'EOF' > log\n{PATCH}EOF",
        f"apply_patch <<'EOF'\n{PATCH}EOF\necho done",
        f"apply_patch <<'EOF'\n{PATCH}",
        f"apply_patch x <<'EOF'\n{PATCH}EOF",
        f"apply_patch '{PATCH}'",
        f"apply_patch <<< '{PATCH}'",
        f"cat <<EOF | apply_patch\n{PATCH}EOF",
        f"./apply_patch <<'EOF'\n{PATCH}EOF",
        f"bash -lc \"apply_patch <<'EOF'\n{PATCH}EOF\"",
        "apply_patch",
        "ls",
        "",
    ],
)
def test_anything_else_is_left_to_the_shell(script: str):
    assert find_patch(["bash", "-lc", script]) is None


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["apply_patch"],
        ["apply_patch", "a", "b"],
        ["./apply_patch", PATCH],
        ["bash", "-x", f"apply_patch <<EOF\n{PATCH}EOF"],
        ["bash", "-lc", f"apply_patch <<EOF\n{PATCH}EOF", "arg"],
        ["fish", "-c", f"apply_patch <<EOF\n{PATCH}EOF"],
    ],
)
def test_other_argument_vectors_are_no_patch(argv: list[str]):
    assert find_patch(argv) is None


@pytest.mark.parametrize("text", [PATCH, f"\n{PATCH}\n", f"<<'EOF'\n{PATCH}EOF"])
def test_a_command_that_is_a_patch_is_told(text: str):
    assert is_bare_patch([text])
    assert is_bare_patch(["/bin/bash", "-lc", text])


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}EOF"],
        ["bash", "-lc", f"cat <<'EOF'\n{PATCH}EOF"],
        ["fish", "-c", PATCH],
        ["apply_patch", PATCH],
    ],
)
def test_a_command_that_has_a_patch_in_it_is_none(argv: list[str]):
    assert not is_bare_patch(argv)
