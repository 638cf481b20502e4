import base64
from pathlib import Path

from codex_py.frontends.app_server import params
from codex_py.frontends.app_server.threads.inputs import Inputs

IMAGE = params.ImageInput(
    type="image", url=f"data:image/png;base64,{base64.b64encode(b'png').decode()}"
)


def test_images_lie_below_the_home_until_the_client_is_gone(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path)
    _, images = inputs.read([IMAGE, IMAGE], Path("/work"))
    assert [image.read_bytes() for image in images] == [b"png", b"png"]
    assert {image.parents[1] for image in images} == {tmp_path / "codex-py/tmp"}
    inputs.close()
    assert not list((tmp_path / "codex-py/tmp").iterdir())
