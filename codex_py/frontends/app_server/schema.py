"""`codex-py app-server generate-json-schema`: JSON Schemas of the requests that are served, in the layout of Codex."""

import json
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.frontends.app_server.methods import METHODS


def write_schemas(folder: Path) -> None:
    """`ClientRequest.json`, and one file for the params of each method.

    Raises:
        CodexError: a file cannot be written.
    """
    requests: list[dict[str, object]] = []
    try:
        (folder / "v2").mkdir(parents=True, exist_ok=True)
        for method, params in METHODS.items():
            name = "".join(part.capitalize() for part in method.split("/")) + "Params"
            schema = params.model_json_schema()
            _write(folder / "v2" / f"{name}.json", {"title": name, **schema})
            fields = {"method": {"const": method}, "params": schema}
            requests.append({"properties": fields, "required": ["id", "method"]})
        _write(folder / "ClientRequest.json", {"title": "ClientRequest", "oneOf": requests})
    except OSError as error:
        raise CodexError(f"cannot write {error.filename}: {error.strerror}", code="out") from error


def _write(path: Path, schema: object) -> None:
    path.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
