import pytest

from codex_py import __version__
from codex_py.config.environment import ShellEnvironmentPolicy, child_environment

USER = {
    "PATH": "/bin",
    "HOME": "/h",
    "MY_KEY": "k",
    "OPENAI_API_KEY": "sk",
    "Some_Token": "t",
    "X": "1",
}
ADDED = {
    "CODEX_CI": "1",
    "CODEX_THREAD_ID": "T",
    "CODEX_SESSION_ID": "T",
    "CODEX_VERSION": __version__,
    "NO_COLOR": "1",
    "TERM": "dumb",
    "COLORTERM": "",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LC_CTYPE": "C.UTF-8",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GH_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


def child(
    policy: ShellEnvironmentPolicy, *, network_disabled: bool = False
) -> dict[str, str]:
    variables = child_environment(
        policy,
        USER,
        thread_id="T",
        network_disabled=network_disabled,
        secret_names=("OPENAI_API_KEY",),
    )
    assert variables.items() >= ADDED.items()
    return {
        name: value for name, value in variables.items() if ADDED.get(name) != value
    }


def test_by_default_everything_but_the_providers_key_is_passed_on():
    assert child(ShellEnvironmentPolicy()) == {
        name: value for name, value in USER.items() if name != "OPENAI_API_KEY"
    }


def test_variables_that_commands_cannot_do_without_are_no_secrets():
    variables = child_environment(
        ShellEnvironmentPolicy(),
        {"PATH": "/bin", "USER": "u", "Token": "t"},
        thread_id="T",
        network_disabled=False,
        secret_names=("PATH", "USER", "Token"),
    )
    assert (variables["PATH"], variables["USER"], "Token" in variables) == (
        "/bin",
        "u",
        False,
    )


def test_a_restricted_network_is_announced():
    assert child(ShellEnvironmentPolicy(inherit="none"), network_disabled=True) == {
        "CODEX_SANDBOX_NETWORK_DISABLED": "1"
    }


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (ShellEnvironmentPolicy(inherit="none"), {}),
        (ShellEnvironmentPolicy(inherit="core"), {"PATH": "/bin", "HOME": "/h"}),
        (
            ShellEnvironmentPolicy(ignore_default_excludes=False),
            {"PATH": "/bin", "HOME": "/h", "X": "1"},
        ),
        (
            ShellEnvironmentPolicy(exclude=("h*", "my_?ey", "some*")),
            {"PATH": "/bin", "X": "1"},
        ),
        (
            ShellEnvironmentPolicy(
                inherit="core", set={"A_KEY": "v", "HOME": "/other"}
            ),
            {"PATH": "/bin", "HOME": "/other", "A_KEY": "v"},
        ),
        (
            ShellEnvironmentPolicy(
                set={"A": "1", "B": "2"}, include_only=("path", "a")
            ),
            {"PATH": "/bin", "A": "1"},
        ),
        # A pattern does not name a credential; its full name does.
        (ShellEnvironmentPolicy(include_only=("openai*",)), {}),
        (
            ShellEnvironmentPolicy(include_only=("OPENAI_API_KEY",)),
            {"OPENAI_API_KEY": "sk"},
        ),
        (
            ShellEnvironmentPolicy(inherit="none", set={"OPENAI_API_KEY": "other"}),
            {"OPENAI_API_KEY": "other"},
        ),
    ],
)
def test_the_policy_decides_what_is_passed_on(
    policy: ShellEnvironmentPolicy, left: dict[str, str]
):
    assert child(policy) == left


def test_the_user_s_variables_win_over_plain_output_but_not_over_the_identity_of_the_run():
    policy = ShellEnvironmentPolicy(
        inherit="none", set={"TERM": "xterm", "CODEX_CI": "0"}
    )
    variables = child_environment(
        policy, {}, thread_id="T", network_disabled=False, secret_names=()
    )
    assert (variables["TERM"], variables["CODEX_CI"]) == ("xterm", "1")
