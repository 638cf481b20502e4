"""The variations of `--vary`: settings that differ between the attempts."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from codex_py.api.commands import UsageError
from codex_py.api.configuration import unknown_setting
from codex_py.api.exec_runs import decode_prompt


def variations(vary: Sequence[str]) -> list[dict[str, str]]:
    """Combine all values of `--vary`, by key. The value of the first key changes fastest."""
    choices: dict[str, list[str]] = {}
    for text in vary:
        key, _, values = text.partition("=")
        choices[key] = values.split(",")
        if not key or not all(choices[key]):
            raise UsageError(f"--vary: write KEY=VALUE,VALUE, not {text!r}")
        _require_known(key, choices[key][0])
    # `product` changes the last one fastest.
    keys = list(reversed(choices))
    combinations = product(*[choices[key] for key in keys])
    return [dict(zip(keys, values, strict=True)) for values in combinations]


def _require_known(key: str, value: str) -> None:
    """Refuse an unknown setting: its values would make no difference between attempts."""
    if key in {"model", "prompt", "effort"}:
        return
    problem = unknown_setting(f"{key}={value}")
    if problem is not None:
        raise UsageError(f"--vary: {problem}")


def varied_prompt(value: str) -> str:
    """The prompt of `--vary`: a text, or `@` and the path of a file that has it."""
    if not value.startswith("@"):
        return value
    path = value[1:]
    try:
        return decode_prompt(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"--vary: cannot read {path!r}: {error.strerror}") from error
