from codex_py.testing import ScriptedServer, ev_completed, ev_message
from tests.support.program import Workplace


def test_exec_tells_the_model_of_a_skill_that_the_prompt_mentions(place: Workplace) -> None:
    path = place.home / "skills" / "release" / "SKILL.md"
    path.parent.mkdir(parents=True)
    text = "---\ndescription: How we release\n---\nTag it.\n"
    path.write_text(text, encoding="utf-8")
    with ScriptedServer([[*ev_message("Done."), ev_completed()]] * 2) as server:
        assert place.run(server, "Costs $5. Use $release.").code == 0
        assert place.run(server, "Costs $5.").code == 0
    skill = f"<skill>\n<name>release</name>\n<path>{path}</path>\n{text}\n</skill>"
    said = [
        [part["text"] for item in request.body["input"][-2:] for part in item["content"]]
        for request in server.requests
    ]
    assert said[0] == ["Costs $5. Use $release.", skill]
    assert said[1][-1] == "Costs $5."
