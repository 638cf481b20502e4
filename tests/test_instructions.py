from codex_py.instructions import instruction_text


def test_a_text_is_read_without_its_last_line_end():
    assert instruction_text("permissions/network-enabled.md") == "Commands can use the network."


def test_the_base_prompt_shows_a_whole_patch():
    text = instruction_text("base.md")
    assert text.index("*** Begin Patch\n") < text.index("\n*** End Patch\n")
