"""Settings of Codex without an effect here are named in one warning."""

from tests.config.conftest import Place


def test_all_settings_without_effect_are_told_in_one_line(place: Place):
    place.user(
        'log_dir = "m"\nfeatures.memories = true\nagents.job_max_runtime_seconds = 2\n'
        'agents.default_subagent_model = "m"\n'
        "[mcp_servers.s]\ncommand = 'x'\ntools.t.output_token_limit = 5\n[otel]\nother = 1\n"
    )
    assert place.load().warnings == (
        "These settings have no effect in this version: agents.job_max_runtime_seconds, features.memories,"
        " log_dir, mcp_servers.s.tools.t.output_token_limit, otel.other.",
    )


def test_a_value_that_asks_for_what_happens_anyway_is_not_told(place: Place):
    place.user(
        "show_raw_agent_reasoning = false\nfeatures.goals = false\nanalytics.enabled = false\n"
        "features.unified_exec = true\ntui.alternate_screen = 'never'\n[notice]\nseen = true\n"
    )
    assert place.load().warnings == ()


def test_a_project_does_not_make_it_two_lines(place: Place):
    place.trusted('personality = "friendly"\n')
    place.project('file_opener = "vscode"\n')
    assert place.load().warnings == (
        "These settings have no effect in this version: file_opener, personality.",
    )
