import shutil
import subprocess
import sys
from pathlib import Path

from codex_py import instructions
from codex_py.instructions import instruction_text


def test_a_text_is_read_without_its_last_line_end():
    assert (
        instruction_text("permissions/network-enabled.md")
        == "Commands can use the network."
    )


def test_the_base_prompt_shows_a_whole_patch():
    text = instruction_text("base.md")
    assert text.index("*** Begin Patch\n") < text.index("\n*** End Patch\n")


def test_an_installed_package_reads_the_texts_that_it_carries(tmp_path: Path):
    # As in a wheel: the module and the folder of the same name lie side by side.
    shutil.copy(str(instructions.__file__), tmp_path / "instructions.py")
    (tmp_path / "instructions").mkdir()
    (tmp_path / "instructions" / "a.md").write_text("text\n", encoding="utf-8")
    script = "import instructions; print(instructions.instruction_text('a.md'))"
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert run.stdout == "text\n"
