"""Reports of a run of `exec` for the CI service in which it is.

A report is an entry point of `codex_py.reports`, named as the environment variable that asks for it.
The program looks for these: `GITHUB_STEP_SUMMARY`, `GITLAB_CI`, `BITBUCKET_BUILD_NUMBER`, `BUILDKITE`,
`CIRCLECI`, `JENKINS_URL`, `TEAMCITY_VERSION` and `TF_BUILD`.

    [project.entry-points."codex_py.reports"]
    GITLAB_CI = "codex_py_gitlab:report"

If the variable is set, the value is called with what it holds, and with a function that warns the user.
It returns an `EventSink`, which takes every event of the session and must not raise.
"""

from codex_py.protocol.events import EventSink

__all__ = ["EventSink"]
