"""Lists the features of Codex 0.171, each with its stage and its state in the configuration. LIGHT."""

import re
from collections.abc import Iterator, Mapping

from codex_py.config.check import lookup
from codex_py.config.config import Config
from codex_py.config.declared.names import feature_lines
from codex_py.config.declared.section import raw
from codex_py.protocol.frozen import frozen


@frozen
class Feature:
    name: str
    stage: str
    """`stable`, `experimental`, `under development`, `deprecated` or `removed`."""
    is_default: bool
    """True if the feature is on unless the configuration says otherwise."""
    is_on: bool


def listed_features(config: Config) -> Iterator[Feature]:
    """Yield all features by name, without old spellings."""
    for line in feature_lines():
        cells = re.split(r"  +", line)
        is_row = len(cells) > 1
        if is_row:
            name, stage, default = cells
            is_default = default == "true"
            is_on = _state(config, name, is_default)
            yield Feature(name, stage, is_default, is_on)


def _state(
    config: Config,
    name: str,
    default: bool,
) -> bool:
    """True if the configuration switches the feature on, or says nothing and it is on by
    default."""
    found = lookup(raw(config.features), switch_key(config, name))
    if found is None:
        return default
    return found


def switch_key(config: Config, name: str) -> tuple[str, ...]:
    """The key in `[features]` that switches a feature, which may have a table of settings."""
    has_settings = isinstance(raw(config.features).get(name), Mapping)
    if has_settings:
        return name, "enabled"
    return (name,)
