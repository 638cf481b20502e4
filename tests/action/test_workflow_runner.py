"""The stand-in for the runner of GitHub Actions, on actions of the forms that public ones have.

The three composite actions are written for these tests. Their forms are those of `dtolnay/rust-toolchain` (it parses an
input, later steps use its outputs; a fallback between inputs, steps for other systems, `continue-on-error`, variables
for the rest of the job), `actions/upload-pages-artifact` (a default, an archive in the temporary folder, another action
within) and `snok/install-poetry` (a script that makes a program, and a folder for `PATH`).
"""

import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.workflow_expressions import ExpressionError, holds, value_of
from tests.support.workflow_runner import Job, JobResult, WorkflowError

TOOLCHAIN = """
inputs:
  version: {description: d, required: true}
  targets: {required: false}
  target: {required: false}
outputs:
  name: {value: "${{steps.parse.outputs.name}}"}
  targets: {value: "${{ steps.install.outputs.targets }}"}
  lines: {value: "${{ steps.install.outputs.lines }}"}
runs:
  using: composite
  steps:
    - id: parse
      shell: bash
      env: {version: "${{inputs.version}}"}
      run: |
        if [[ $version =~ ^1\\.[0-9]+$ ]]; then echo "name=$version.0" >> $GITHUB_OUTPUT
        else echo "name=$version" >> $GITHUB_OUTPUT; fi
    - run: echo TOOLS_HOME="${{runner.os == 'Windows' && '$USERPROFILE' || '$HOME'}}/tools" >> $GITHUB_ENV
      shell: bash
    - run: exit 1
      if: runner.os == 'Windows'
      shell: bash
    - id: default
      run: exit 7
      shell: bash
      continue-on-error: true
    - id: install
      if: ${{ steps.default.outcome == 'failure' && steps.default.conclusion == 'success' }}
      run: |
        echo "targets=$targets" >> "$GITHUB_OUTPUT"
        printf 'lines<<END\\none\\n\\n two=2\\nEND\\n' >> "$GITHUB_OUTPUT"
      env:
        targets: ${{inputs.targets || inputs.target || 'none'}}
      shell: sh
"""
ARCHIVE = """
inputs:
  path: {required: true, default: _site/}
outputs:
  artifact_id: {value: "${{ steps.upload.outputs.artifact-id }}"}
runs:
  using: composite
  steps:
    - shell: sh
      if: runner.os == 'Linux'
      run: tar --directory "$INPUT_PATH" -cf "$RUNNER_TEMP/artifact.tar" --exclude=.git .
      env: {INPUT_PATH: "${{ inputs.path }}"}
    - {shell: sh, if: "runner.os == 'macOS'", run: gtar}
    - id: upload
      uses: example/upload@v4
      with: {path: "${{ runner.temp }}/artifact.tar"}
"""
INSTALL = """
inputs:
  version: {default: '1.8'}
runs:
  using: composite
  steps:
    - run: bash "${{ github.action_path }}/main.sh"
      shell: bash
      env: {VERSION: "${{ inputs.version }}"}
"""
INSTALL_SCRIPT = """
mkdir -p "$HOME/bin"
printf '#!/bin/sh\\necho poetry %s\\n' "$VERSION" > "$HOME/bin/poetry"
chmod +x "$HOME/bin/poetry"
echo "$HOME/bin" >> $GITHUB_PATH
"""


@pytest.fixture
def actions(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"example/upload": _upload}
    for name, text in {
        "toolchain": TOOLCHAIN,
        "archive": ARCHIVE,
        "install": INSTALL,
    }.items():
        folder = tmp_path / "actions" / name
        folder.mkdir(parents=True)
        (folder / "action.yml").write_text(text, encoding="utf-8")
        found[f"example/{name}"] = folder
    (found["example/install"] / "main.sh").write_text(INSTALL_SCRIPT, encoding="utf-8")
    return found


def _upload(_: Job, inputs: Mapping[str, str]) -> Mapping[str, str]:
    with tarfile.open(inputs["path"]) as archive:
        return {"artifact-id": ",".join(sorted(archive.getnames()))}


def run(
    folder: Path, actions: Mapping[str, Any], steps: str, **options: Any
) -> JobResult:
    job = Job(folder / "runner", actions=actions, **options)
    (job.workspace / "_site").mkdir()
    (job.workspace / "_site" / "index.html").touch()
    text = "\n".join(f"      {line}" for line in steps.strip().splitlines())
    return job.run(
        f"jobs:\n  a:\n    steps:\n{text}\n    outputs: {{o: '${{{{ steps.x.outputs.o }}}}'}}",
        "a",
    )


def test_a_composite_action_parses_its_inputs(
    tmp_path: Path, actions: Mapping[str, Any]
) -> None:
    steps = """
- id: tools
  uses: example/toolchain@v1
  with: {version: '1.60', target: wasm}
- id: x
  run: |
    echo "o=$TOOLS_HOME ${{ steps.tools.outputs.name }}" >> $GITHUB_OUTPUT
"""
    result = run(tmp_path, actions, steps)
    assert result.conclusion == "success"
    assert result.steps["tools"]["outputs"] == {
        "name": "1.60.0",
        "targets": "wasm",
        "lines": "one\n\n two=2",
    }
    assert result.outputs == {"o": f"{tmp_path}/runner/home/tools 1.60.0"}


def test_an_action_within_an_action_gets_what_the_first_made(
    tmp_path: Path, actions: Mapping[str, Any]
) -> None:
    result = run(tmp_path, actions, "- {id: pages, uses: example/archive@v3}")
    assert result.steps["pages"]["outputs"] == {"artifact_id": ".,./index.html"}


def test_a_script_of_an_action_adds_to_the_path(
    tmp_path: Path, actions: Mapping[str, Any]
) -> None:
    steps = """
- uses: example/install@v1
- {id: x, run: 'echo "o=$(poetry)" >> $GITHUB_OUTPUT', working-directory: _site}
"""
    assert run(tmp_path, actions, steps).outputs == {"o": "poetry 1.8"}


def test_steps_after_a_failure_run_only_if_their_condition_asks_for_it(
    tmp_path: Path,
) -> None:
    steps = """
- {id: first, run: "echo '::error file=a.py,line=3,title=T%3A::one%0Atwo'; exit 3"}
- {id: second, run: 'true'}
- {id: third, if: always(), run: 'echo done >> $GITHUB_STEP_SUMMARY'}
- {id: fourth, if: "failure() && github.actor == 'OctoCat'", run: 'true'}
"""
    result = run(tmp_path, {}, steps)
    outcomes = [
        result.steps[name]["outcome"] for name in ("first", "second", "third", "fourth")
    ]
    assert (result.conclusion, outcomes) == (
        "failure",
        ["failure", "skipped", "success", "success"],
    )
    assert result.summary == "done\n"
    annotation = result.annotations[0]
    assert (annotation.level, annotation.message) == ("error", "one\ntwo")
    assert annotation.properties == {"file": "a.py", "line": "3", "title": "T:"}


def test_secrets_and_masks_are_not_in_the_log_and_stopped_commands_do_nothing(
    tmp_path: Path,
) -> None:
    steps = """
- env: {KEY: "${{ secrets.KEY }}"}
  run: |
    echo "$KEY"; echo ::add-mask::hidden; echo hidden
    echo ::stop-commands::t; echo ::error::no; echo ::t::; echo ::notice::yes
"""
    result = run(tmp_path, {}, steps, secrets={"KEY": "k-123"})
    assert "k-123" in result.raw_log
    assert "k-123" not in result.log
    assert "hidden" not in result.log
    assert [(each.level, each.message) for each in result.annotations] == [
        ("notice", "yes")
    ]


def test_processes_that_a_step_leaves_running_end_with_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.workflow_runner.LEAVING_S", 0.5)
    result = run(tmp_path, {}, "- run: sleep 100 >/dev/null 2>&1 &")
    assert result.left_behind == ["sleep 100 "]


def test_an_action_has_no_secrets_and_a_step_of_it_needs_a_shell(
    tmp_path: Path,
) -> None:
    for number, text in enumerate(
        ("run: 'true'", "{shell: sh, run: '${{ secrets.KEY }}'}")
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        action = f"runs:\n  using: composite\n  steps:\n    - {text}\n"
        (folder / "action.yml").write_text(action, encoding="utf-8")
        with pytest.raises(WorkflowError if number == 0 else ExpressionError):
            run(folder, {"example/a": folder}, "- uses: example/a@v1")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("inputs.a == 'TRUE' && 'yes' || 'no'", "yes"),
        ("inputs['b-c'] != ''", True),
        ("inputs.none || 3", 3.0),
        ("!(1 < 2) || contains('Hello', 'LL')", True),
        ("format('{0}-{1}', inputs.a, 2)", "true-2"),
        ("fromJSON('[1, \"x\"]')[1]", "x"),
        ("contains(fromJSON('[\"x\"]'), 'X')", True),
        ("toJSON(inputs)", '{\n  "a": "true",\n  "b-c": "it\'s"\n}'),
        ("inputs.b-c == 'it''s'", True),
        ("null == 0", True),
    ],
)
def test_expressions(expression: str, value: Any) -> None:
    context = {"inputs": {"a": "true", "b-c": "it's"}, "job": {"status": "success"}}
    assert value_of(expression, context) == value


def test_conditions() -> None:
    failed = {"job": {"status": "failure"}}
    conditions = (None, "always()", "${{ failure() }}", "1 == 1", "success() || true")
    assert [holds(condition, failed) for condition in conditions] == [
        *(False, True, True, False, True)
    ]
