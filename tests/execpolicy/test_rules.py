"""Files of rules. Where nothing else is said, Codex 0.169 takes and refuses the same texts.

Also tests `execpolicy/added_rule.py` and `execpolicy/starlark.py`.
"""

import multiprocessing
import resource
import stat
from pathlib import Path

import pytest

from codex_py.errors import ConfigError, ExitCode
from codex_py.execpolicy.added_rule import allow_prefix
from codex_py.execpolicy.decision import CommandRules, Decision, PrefixRule
from codex_py.execpolicy.rules import load_rules, parse_rules

A = PrefixRule((("a",),))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("", []),
        ('# only\n"""doc"""\npass\n', []),
        ('prefix_rule(pattern=["a"])', [A]),
        ('prefix_rule(["a"])', [A]),
        ('prefix_rule(["a"], "prompt")', [PrefixRule((("a",),), Decision.PROMPT)]),
        ('prefix_rule(\r\n  pattern = ["a"], # why\r\n)\r\n', [A]),
        ('prefix_rule(pattern=["a"]); prefix_rule(pattern=["a"])', [A, A]),
        (
            'prefix_rule(pattern=["a", ["b", "c"]], decision="forbidden", justification="no")',
            [PrefixRule((("a",), ("b", "c")), Decision.FORBIDDEN, "no")],
        ),
        ('prefix_rule(pattern=[["a", "b"], ["c"]])', [PrefixRule((("a", "b"), ("c",)))]),
        ('X = ["a"]\nprefix_rule(pattern=X + ["b" + "c"])', [PrefixRule((("a",), ("bc",)))]),
        ('X = "b"\nX = "a"\nprefix_rule(pattern=[X])', [A]),
        ("prefix_rule(pattern=['a', r'\\d', '\\q', '\\x61\\u00e9'])",
         [PrefixRule((("a",), ("\\d",), ("\\q",), ("aé",)))]),
        ('prefix_rule(pattern=[""])', [PrefixRule((("",),))]),
        ('prefix_rule(pattern=["a"], match=["a b", ["a", "c"]], not_match=["b a", ["c"]])', [A]),
        ('prefix_rule(pattern=["a", "b c"], match=["a \'b c\' # x", "a b\\\\ c"])',
         [PrefixRule((("a",), ("b c",)))]),
        ('prefix_rule(pattern=["a"], match=["/opt/a x"])', [A]),
        # Starlark has no implicit concatenation; Python reads it.
        ('prefix_rule(pattern=["a" "b"])', [PrefixRule((("ab",),))]),
    ],
)  # fmt: skip
def test_a_file_gives_its_rules(text: str, rules: list[PrefixRule]) -> None:
    assert parse_rules(text, "x.rules") == CommandRules(tuple(rules))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('prefix_rule(pattern=["a"', "1:21: not valid Starlark: '[' was never closed"),
        ('\n  prefix_rule(pattern=["a"])', "2:2: not valid Starlark: unexpected indent"),
        ("import os", "1:1: {no call}"),
        ("prefix_rule", "1:1: {no call}"),
        ('x = "é"; os.system("x")', "1:10: {no call}"),
        ('prefix_rule(pattern=[])', "1:21: pattern: must not be empty"),
        ('prefix_rule(pattern="a")', "1:21: pattern: expected a list, not a string"),
        ('prefix_rule(pattern=["a", 1])',
         "1:21: pattern: expected words or lists of words, not a number"),
        ('prefix_rule(pattern=["a", None])',
         "1:21: pattern: expected words or lists of words, not None"),
        ('prefix_rule(pattern=["a", []])', "1:21: pattern: alternatives must not be empty"),
        ('prefix_rule(pattern=["a", ["b", ["c"]]])',
         "1:21: pattern: expected words or lists of words, not a list"),
        ('prefix_rule(pattern=("a",))', "1:21: {no literal}"),
        ('prefix_rule(pattern=[b"a"])', "1:22: {no literal}"),
        ('prefix_rule(pattern=["a"], decision="deny")',
         "1:37: decision: expected one of allow, prompt, forbidden, not 'deny'"),
        ('prefix_rule(pattern=["a"], decision=None)', "1:37: decision: expected a string, not None"),
        ('prefix_rule(pattern=["a"], justification=" ")', "1:42: justification: must not be empty"),
        ('prefix_rule(pattern=["a"], other=1)',
         "1:34: prefix_rule has no 'other'; "
         "it has pattern, decision, match, not_match, justification"),
        ('prefix_rule(pattern=["a"], pattern=["b"])', "1:28: 'pattern' is given twice"),
        ('prefix_rule(["a"], pattern=["b"])', "1:28: 'pattern' is given twice"),
        ('prefix_rule(["a"], "allow", [], [], "x", 1)', "1:42: prefix_rule takes 5 arguments"),
        ("prefix_rule()", "1:1: prefix_rule needs pattern=…"),
        ('prefix_rule(pattern=[A])', "1:22: the name 'A' is not defined above"),
        ('prefix_rule(pattern=["a"] + "b")', "1:21: `+` joins two strings or two lists"),
        ('A = ["a"]\n' + "A = A + A\n" * 40, "18:5: longer than 100000"),
        ('rule(pattern=["a"])',
         "1:1: unknown rule 'rule'; expected prefix_rule, host_executable or network_rule"),
        ('prefix_rule(pattern=["a"], match=["b"])',
         "1:34: this rule does not match 'b', which is in its `match`"),
        ('prefix_rule(\n  pattern=["a"],\n  not_match=["b", "a x"])',
         "3:13: this rule matches 'a x', which is in its `not_match`"),
        ('prefix_rule(pattern=["a"], match=[""])', "1:34: match: an example must not be empty"),
        ('prefix_rule(pattern=["a"], match=[[]])', "1:34: match: an example must not be empty"),
        ('prefix_rule(pattern=["a"], match="a")', "1:34: match: expected a list, not a string"),
        ('prefix_rule(pattern=["a"], match=[1])',
         "1:34: match: expected commands, as strings or lists of words"),
        ('prefix_rule(pattern=["a"], match=["a \'b"])',
         '1:34: match: "a \'b" is no shell command: no closing quotation'),
        ('host_executable(name="a", paths=["bin/a"])',
         "1:33: paths: expected absolute paths, not 'bin/a'"),
        ('host_executable(name="a", paths=["/bin/b"])', "1:33: paths: '/bin/b' does not end in 'a'"),
        ('host_executable(name="b/a", paths=[])',
         "1:22: name: expected a name without a folder, not 'b/a'"),
        ('host_executable(name="", paths=[])', "1:22: name: must not be empty"),
        ('host_executable(name="a")', "1:1: host_executable needs paths=…"),
        ('network_rule(host="*.com", protocol="http", decision="allow")',
         "1:19: host: expected one host name or address, not '*.com'"),
        ('network_rule(host="a.com", protocol="ftp", decision="deny")',
         "1:37: protocol: expected http, https, socks5_tcp or socks5_udp"),
        ('network_rule("a.com", "http", "ask")',
         "1:31: decision: expected one of allow, prompt, forbidden, not 'ask'"),
        # What Codex runs, and this program does not.
        ('[prefix_rule(pattern=[x]) for x in ["a"]]', "1:1: {no call}"),
        ('def f():\n  pass', "1:1: {no call}"),
        ('prefix_rule(pattern=["%s" % "a"])', "1:22: {no literal}"),
        ('prefix_rule(pattern=[f"a"])', "1:22: {no literal}"),
        ('prefix_rule(**{"pattern": ["a"]})', "1:13: expected NAME=VALUE; ** is not read here"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(text: str, message: str) -> None:
    message = message.replace(
        "{no call}",
        "expected a rule, such as prefix_rule(pattern=[…]), or NAME = value; "
        "loops, conditions and functions are not read here",
    ).replace("{no literal}", "expected a string or a list of strings, written out")
    with pytest.raises(ConfigError) as caught:
        parse_rules(text, "x.rules")
    assert str(caught.value) == f"Error loading rules: x.rules:{message}"
    assert caught.value.exit_code == ExitCode.CONFIGURATION


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "a\0",
        "[" * 100_000,
        "-" * 100_000,
        "x = " + '"a" + ' * 100_000 + '"a"',
        "\ufeff",
    ],
)
def test_a_file_that_python_cannot_read_is_a_mistake_too(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^Error loading rules: x\.rules:1:\d+: "):
        parse_rules(text, "x.rules")


def test_examples_know_the_paths_of_the_whole_file() -> None:
    text = 'host_executable(name="git", paths=["/opt/git"])\n'
    rule = 'prefix_rule(pattern=["git"], match=["/opt/git x"], not_match=["/usr/bin/git x"])\n'
    expected = CommandRules((PrefixRule((("git",),)),), {"git": ("/opt/git",)})
    assert (
        parse_rules(text + rule, "x.rules")
        == parse_rules(rule + text, "x.rules")
        == expected
    )
    # The last one of a name counts.
    first = 'host_executable(name="git", paths=["/usr/bin/git"])\n'
    assert parse_rules(first + text + rule, "x.rules") == expected


def test_a_path_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    rules = parse_rules('host_executable(name="az", paths=["~/bin/../az"])', "x.rules")
    assert rules.host_executables == {"az": ("/home/me/az",)}


def test_a_network_rule_is_accepted_with_a_warning() -> None:
    text = 'network_rule(host="a.com", protocol="https", decision="deny", justification="x")'
    assert parse_rules(text, "x.rules") == CommandRules(
        warnings=("x.rules:1: network_rule for 'a.com' has no effect",)
    )


def test_the_files_of_folders_are_read_by_name(tmp_path: Path) -> None:
    for name, word in [("1/b.rules", "c"), ("1/a.rules", "b"), ("0/z.rules", "a")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(
            f'prefix_rule(pattern=["{word}"])', encoding="utf-8"
        )
    (tmp_path / "1" / "c.rules").mkdir()
    (tmp_path / "1" / "c.rules.bak").write_text("no", encoding="utf-8")
    rules = load_rules([tmp_path / "0", tmp_path / "missing", tmp_path / "1"])
    assert [rule.pattern for rule in rules.prefix_rules] == [
        (("a",),),
        (("b",),),
        (("c",),),
    ]
    assert load_rules([]) == load_rules([tmp_path / "0" / "z.rules"]) == CommandRules()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.rules"
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError) as caught:
        load_rules([tmp_path])
    assert str(caught.value) == f"Error loading rules: {file}: not UTF-8"


def test_an_allowed_prefix_is_written_once(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "rules"
    for _ in range(2):
        allow_prefix(folder, ["git", "commit"])
    allow_prefix(folder, ['é "\\\n', "\u2028"])
    file = folder / "default.rules"
    # As Codex 0.169 writes it, byte by byte: either program knows the lines of the other.
    assert file.read_text(encoding="utf-8") == (
        'prefix_rule(pattern=["git", "commit"], decision="allow")\n'
        'prefix_rule(pattern=["é \\"\\\\\\n", "\u2028"], decision="allow")\n'
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert load_rules([folder]) == CommandRules(
        (PrefixRule((("git",), ("commit",))), PrefixRule((('é "\\\n',), ("\u2028",))))
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# mine", "# mine\n{a}\n"),
        ("# mine\n", "# mine\n{a}\n"),
        ("{a}", "{a}"),
        ("{a}\r\n# mine", "{a}\r\n# mine"),
        ("# {a}\n", "# {a}\n{a}\n"),
    ],
)
def test_existing_rules_in_the_file_stay(
    before: str, after: str, tmp_path: Path
) -> None:
    line = 'prefix_rule(pattern=["a"], decision="allow")'
    file = tmp_path / "default.rules"
    file.write_bytes(before.replace("{a}", line).encode())
    file.chmod(0o644)
    allow_prefix(tmp_path, ["a"])
    assert file.read_bytes().decode() == after.replace("{a}", line)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_allow_several, args=(tmp_path, first))
        for first in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = {rule.pattern[0][0] for rule in load_rules([tmp_path]).prefix_rules}
    assert found == {f"w{n}" for n in range(13)}
    assert (
        len((tmp_path / "default.rules").read_text(encoding="utf-8").splitlines()) == 13
    )


def _allow_several(folder: Path, first: int) -> None:
    for number in range(first, first + 10):
        allow_prefix(folder, [f"w{number}"])


@pytest.mark.parametrize("prefix", [[], ["\ud800"]])
def test_a_rule_that_no_file_can_express_is_not_written(
    prefix: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (two reasons)
        allow_prefix(tmp_path, prefix)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "default.rules"
    file.write_text("# mine", encoding="utf-8")
    writer = multiprocessing.get_context("fork").Process(
        target=_allow_with_no_room, args=(tmp_path,)
    )
    writer.start()
    writer.join()
    assert writer.exitcode == 0
    assert file.read_text(encoding="utf-8") == "# mine"


def _allow_with_no_room(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
    with pytest.raises(OSError, match="disk is full"):
        allow_prefix(folder, ["a"])
