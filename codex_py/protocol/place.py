"""The places at which features of extensions stand among those of the program. LIGHT.

The declaration of a table names one, and the first frame of the terminal reads the configuration: this
module imports nothing of the session.
"""

from enum import Enum


class Place(Enum):
    """The place of a feature of an extension among those of the program."""

    OUTERMOST = "outermost"
    """Around the features that count, change or refuse calls and requests: it sees each call from its
    start to its end."""
    BEHIND_HOOKS = "behind hooks"
    """Inside of the hooks, and around the record of changes. It sees calls as a hook rewrote them, no
    call that a hook refused, and it is asked about the end of a turn when the hooks are satisfied."""
