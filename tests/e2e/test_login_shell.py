"""Commands run with what the user's login shell sets, and the profile runs once."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from codex_py.testing import RecordedRequest, ev_completed, ev_function_call, ev_message
from tests.sandbox.local_backends import BACKENDS
from tests.support.agents import AgentServer, says, waits
from tests.support.agents import calls as agent_calls
from tests.support.lifeline import Lifeline
from tests.support.program import Outcome, Workplace
from tests.support.server import ScriptedServer

_NOISY = """\
echo ran >>"$HOME/runs"
echo to-stderr >&2; echo to-stdout
cd /; trap 'echo bye' EXIT DEBUG; PROMPT_COMMAND='echo prompt'
"""
_PROFILE = r"""
export LINES_IN="a
b" QUOTED="it's \"x\" \$HOME"
PLAIN="c
d"; declare -A TABLE=([k]="v w"); readonly FIXED=1; export -f
hello() { echo "hello $PLAIN ${TABLE[k]} $FIXED $(cat <<END
of here
END
)"; }
shout() { echo "$1!"; }; export -f shout
shopt -s expand_aliases extglob
alias two='echo "it'"'"'s" one
echo two'
umask 027; set -u
PATH="$HOME/bin:$PATH"; unset GONE
"""


def calls(*scripts: str | dict[str, Any]) -> ScriptedServer:
    """A command each turn."""
    return ScriptedServer(
        [
            *(
                [
                    *ev_function_call(
                        f"c{n}", "exec_command", {"cmd": s} if isinstance(s, str) else s
                    ),
                    ev_completed(),
                ]
                for n, s in enumerate(scripts)
            ),
            [*ev_message("done"), ev_completed()],
        ]
    )


@pytest.fixture
def lifeline(tmp_path: Path) -> Generator[Lifeline]:
    with Lifeline(tmp_path) as line:
        yield line


def profile(place: Workplace, text: str, name: str = ".bash_profile") -> Path:
    file = place.home.parent / name
    file.write_text(text, "utf-8")
    return file


def runs(place: Workplace) -> int:
    return len((place.home.parent / "runs").read_text("utf-8").splitlines())


def outputs(outcome: Outcome) -> list[str]:
    assert outcome.code == 0, outcome
    return [
        i["aggregated_output"]
        for i in outcome.items
        if i["type"] == "command_execution"
    ]


def test_the_profile_runs_once_and_prints_nothing(place: Workplace) -> None:
    profile(place, _NOISY)
    with calls(*["pwd; echo err >&2; exit 3"] * 3) as server:
        outcome = place.run(server)
    assert outputs(outcome) == [f"{place.cwd}\nerr\n"] * 3
    assert runs(place) == 1
    commands = [i for i in outcome.items if i["type"] == "command_execution"]
    assert {i["command"] for i in commands} == {
        "/bin/bash -lc 'pwd; echo err >&2; exit 3'"
    }
    assert {i["exit_code"] for i in commands} == {3}
    assert "to-std" not in str(server.requests[-1].input)


def test_a_command_finds_what_the_profile_has_set(place: Workplace) -> None:
    script = (
        'two; hello; shout hey; shopt -p extglob; echo "$LINES_IN|$QUOTED|${GONE-gone}"; umask\n'
        'case abc in @(abc|d)) echo glob; esac; echo "${PATH%%:*} $SHLVL $0 $#"; echo $-\n'
        "echo ${!CODEX_PY_SETUP*}; env | grep -c SETUP; bash -c 'shout inner; hello' 2>&1"
    )
    profile(place, _PROFILE)
    with calls(script) as server:
        (printed,) = outputs(place.run(server, env={"GONE": "here"}))
    home = place.home.parent
    expected = (
        "it's one\ntwo\nhello c\nd v w 1 of here\nhey!\nshopt -s extglob\n"
        'a\nb|it\'s "x" $HOME|gone\n0027\n'
        f"glob\n{home}/bin 1 /bin/bash 0\nhuBc\n"
        "\n0\ninner!\nbash: line 1: hello: command not found\n"
    )
    assert printed == expected


def test_errors_have_the_line_numbers_of_the_script(place: Workplace) -> None:
    script = "nosuch\necho $LINENO\nhello\n)"
    profile(place, "hello() { echo hello; }")
    with calls(script, {"cmd": script, "shell": "bash", "login": False}) as server:
        ours, plain = outputs(place.run(server))
    assert "hello: command not found" in plain
    expected = plain.replace("/bin/bash: line 3: hello: command not found", "hello")
    assert ours == expected.replace(": -c: line", ": eval: line")


@pytest.mark.parametrize(
    "text",
    [
        "exit 0\n",
        "exec true\n",
        "kill -9 $$\n",
        'for n in {1..30000}; do eval "v$n=some_text_that_is_long_enough_to_be_too_much"; done\n',
        "export ODD=$'\\xff'\n",
        "set -o posix\n",
    ],
)
def test_the_profile_runs_for_each_command_if_the_snapshot_fails(
    place: Workplace, text: str
) -> None:
    profile(place, f"echo ran >>$HOME/runs\n{text}")
    with calls("echo one", "echo two") as server:
        printed = outputs(place.run(server))
    assert printed in (["one\n", "two\n"], ["", ""])
    assert runs(place) in {1, 3}


def test_an_edited_profile_is_read_again(place: Workplace) -> None:
    profile(place, ". ~/.bashrc\n")
    rc = profile(
        place, "echo ran >>~/runs; export STATE=1; state() { echo $STATE; }", ".bashrc"
    )
    edit = f"state; sed -i 's/STATE=1/STATE=2/' {rc}"
    with calls(edit, "state", "state") as server:
        assert outputs(place.run(server)) == ["1\n", "2\n", "2\n"]
    assert runs(place) == 2


def test_hidden_variables_do_not_come_back(place: Workplace) -> None:
    profile(
        place,
        "export MOCK_KEY=again NEW_TOKEN=t SET=profile CODEX_THREAD_ID=no CODEX_NEW=no SHLVL=7 OLDPWD=/x\n"
        "MY_SECRET=s; KEPT=k; f() { :; }\n",
    )
    policy = (
        "[shell_environment_policy]\nignore_default_excludes = false\nexclude = ['ODD_*']\n"
        "set = { SET = 'policy', SET_TOKEN = 'wanted' }\n"
    )
    script = (
        "f; set | grep -aE '^(MOCK_KEY|NEW_TOKEN|MY_SECRET|CODEX_NEW|ODD_|OLDPWD)'\n"
        "echo $SET $SET_TOKEN $KEPT $SHLVL"
    )
    with calls(script, "echo ${CODEX_THREAD_ID}") as server:
        place.configure(server)
        config = place.home / "config.toml"
        config.write_text(config.read_text("utf-8") + policy, "utf-8")
        outcome = place.rerun(env={"ODD_ONE": "1"})
    first, second = outputs(outcome)
    assert first == "policy wanted k 1\n"
    assert second.strip() == outcome.events[0]["thread_id"]


def test_only_what_the_policy_includes_is_there(place: Workplace) -> None:
    profile(place, "export BROUGHT=1 HOME_TOO=2; PLAIN=3; f() { :; }")
    policy = "[shell_environment_policy]\ninclude_only = ['PATH', 'HOME*']\n"
    with calls("echo $BROUGHT $HOME_TOO $PLAIN") as server:
        place.configure(server)
        config = place.home / "config.toml"
        config.write_text(config.read_text("utf-8") + policy, "utf-8")
        assert outputs(place.rerun()) == ["2\n"]


def test_no_profile_runs_where_login_shells_are_not_allowed(place: Workplace) -> None:
    profile(place, _NOISY)
    # What the model itself runs is not looked into.
    own = [
        *ev_function_call("s", "shell", {"command": ["bash", "-lc", "pwd"]}),
        ev_completed(),
    ]
    with calls("echo hi") as server:
        assert outputs(place.run(server, "-c", "allow_login_shell=false", "go")) == [
            "hi\n"
        ]
    assert not (place.home.parent / "runs").exists()
    with ScriptedServer([own, [*ev_message("done"), ev_completed()]]) as server:
        (printed,) = outputs(place.run(server, "-c", "allow_login_shell=false", "go"))
    assert "to-stderr" in printed
    assert runs(place) == 1


def test_a_terminal_has_it_too(place: Workplace) -> None:
    profile(place, f"{_NOISY}\nhello() {{ echo hello; }}; export -f hello")
    script = "hello; bash -c hello; test -t 0 && test -t 1 && echo tty"
    with calls({"cmd": script, "tty": True}) as server:
        assert outputs(place.run(server)) == ["hello\r\nhello\r\ntty\r\n"]


@pytest.mark.parametrize("name", ["bash", "sh"])
def test_a_shell_of_the_model_is_the_users_by_its_name(
    place: Workplace, name: str
) -> None:
    profile(place, "echo noise; export OF=profile", ".profile")
    call = {"cmd": "echo $OF", "shell": name}
    with calls(call, call) as server:
        assert (
            outputs(place.run(server, env={"SHELL": f"/bin/{name}"}))
            == ["profile\n"] * 2
        )


def test_sh_has_what_can_be_asked_of_it(place: Workplace) -> None:
    profile(place, "echo ran >>~/runs; PATH=$PATH:/more; export PATH", ".profile")
    with calls("echo $PATH", "echo $PATH") as server:
        first, second = outputs(place.run(server, env={"SHELL": "/bin/sh"}))
    assert first == second
    assert first.endswith(":/more\n")
    assert runs(place) == 1


def test_sh_runs_a_profile_whose_options_cannot_be_restored(place: Workplace) -> None:
    profile(place, "echo ran >>~/runs; umask 027", ".profile")
    with calls("umask", "umask") as server:
        assert outputs(place.run(server, env={"SHELL": "/bin/sh"})) == ["0027\n"] * 2
    assert runs(place) == 3


def test_rules_look_for_programs_where_the_profile_leads_to(place: Workplace) -> None:
    """A program of the project that the profile puts before that of the system is not what the rule allows."""
    rules = place.home / "rules" / "default.rules"
    rules.parent.mkdir()
    rules.write_text('prefix_rule(pattern=["id"], decision="allow")\n', "ascii")
    (place.cwd / "bin").mkdir()
    program = place.cwd / "bin" / "id"
    program.write_text("#!/bin/sh\ntouch leaves || echo held\n", "ascii")
    program.chmod(0o755)
    profile(place, "PATH=$PWD/bin:$PATH")
    with calls("id") as server:
        (printed,) = outputs(place.run(server, "-s", "read-only", "go"))
    assert "Read-only file system\nheld\n" in printed
    assert [path.name for path in place.cwd.iterdir()] == ["bin"]


def test_a_function_of_the_profile_is_not_what_a_rule_allows(place: Workplace) -> None:
    rules = place.home / "rules" / "default.rules"
    rules.parent.mkdir()
    rules.write_text('prefix_rule(pattern=["id"], decision="allow")\n', "ascii")
    profile(place, "id() { echo function; }; export OF=profile")
    with calls("id -u", "id -u; echo $OF") as server:
        first, second = outputs(place.run(server, "-s", "read-only", "go"))
    assert first == f"{os.getuid()}\n"
    assert second == "function\nprofile\n"


def test_a_child_has_the_snapshot_of_its_parent(place: Workplace) -> None:
    profile(place, "echo ran >>~/runs; f() { echo $CODEX_THREAD_ID; }")
    command = [*ev_function_call("k", "exec_command", {"cmd": "f"}), ev_completed()]
    server = AgentServer(
        [
            [*ev_function_call("p", "exec_command", {"cmd": "f"}), ev_completed()],
            agent_calls("spawn_agent", message="count"),
            waits(),
            says("done"),
        ],
        [command, says("three")],
    )
    with server:
        outcome = place.run(server)
    (child,) = server.ids
    assert outputs(outcome) == [f"{outcome.events[0]['thread_id']}\n"]
    assert any(child in str(request.input[-1]) for request in server.requests)
    assert runs(place) == 1


def test_a_profile_that_hangs_ends_with_the_session(
    place: Workplace, lifeline: Lifeline
) -> None:
    profile(place, f"{lifeline.hold} trap '' TERM HUP; sleep 1000; sleep 1000\n")
    with _answer_when_up(lifeline) as server:
        outcome = place.run(server)
    assert outcome.messages == ["done"]
    lifeline.wait_until_dead()


@pytest.mark.skipif(not BACKENDS, reason="needs a way to hold commands")
def test_the_profile_runs_in_the_sandbox_too(place: Workplace) -> None:
    """The profile itself cannot write to the workspace."""
    profile(
        place,
        f"echo noise; echo ran >>~/runs; touch {place.cwd}/made; f() {{ echo f; }}",
    )
    script = "f; touch mine; ls -A; touch ~/outside || echo held"
    options = (
        "-s",
        "workspace-write",
        "-c",
        "sandbox_workspace_write.exclude_slash_tmp=true",
    )
    (place.home.parent / "tmp").mkdir()
    environment = {"TMPDIR": str(place.home.parent / "tmp")}
    with calls(script) as server:
        (printed,) = outputs(place.run(server, *options, "go", env=environment))
    assert printed.startswith("f\n")
    assert "mine" in printed.splitlines()
    assert "made" not in printed.splitlines()
    assert printed.endswith("held\n")


def test_a_session_without_commands_leaves_nothing(
    place: Workplace, lifeline: Lifeline
) -> None:
    profile(place, lifeline.hold)
    with _answer_when_up(lifeline) as server:
        outcome = place.run(server, "-s", "workspace-write", "go")
    assert (outcome.code, outcome.messages) == (0, ["done"])
    assert not list(place.cwd.iterdir())
    assert not list(place.home.rglob("*napshot*"))


def _answer_when_up(lifeline: Lifeline) -> ScriptedServer:
    def answer(_request: RecordedRequest) -> list[dict[str, Any]]:
        lifeline.wait_until_up()
        return [*ev_message("done"), ev_completed()]

    return ScriptedServer([answer])


WRONG = "echo a | | wc"


@pytest.mark.parametrize("text", ["", "hello() { echo hello; }\n", "exit 0\n"])
@pytest.mark.parametrize("mode", ["danger-full-access", "workspace-write"])
def test_an_error_of_the_syntax_shows_the_models_script_alone(
    place: Workplace, mode: str, text: str
) -> None:
    if text:
        profile(place, text)
    tools = [
        ("exec_command", {"cmd": WRONG}),
        ("exec_command", {"cmd": WRONG, "login": False}),
        ("exec_command", {"cmd": WRONG, "shell": "sh"}),
        ("shell_command", {"command": WRONG}),
        ("shell", {"command": WRONG}),
        ("shell", {"command": ["bash", "-lc", WRONG]}),
        ("exec_command", {"cmd": "env | cut -d= -f1"}),
    ]
    turn = [
        event
        for at, (name, arguments) in enumerate(tools)
        for event in ev_function_call(f"c{at}", name, arguments, index=at)
    ]
    done = [*ev_message("done"), ev_completed()]
    with ScriptedServer([[*turn, ev_completed()], done, done]) as server:
        outcome = place.run(
            server, "-s", mode, "--verify", WRONG, "--verify-tries", "1", "go"
        )
    # A profile that exits has each command succeed.
    assert outcome.code == (0 if "exit" in text else 3), outcome
    said = str([request.input for request in server.requests[1:]])
    assert said.lower().count("syntax error") > (0 if "exit" in text else 6)
    for word in ("unset", "_KEY", "CODEX_PY_SETUP", "builtin"):
        assert word not in said
