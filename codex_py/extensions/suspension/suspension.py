"""How a run is suspended: what the options of the command line ask for."""

from pathlib import Path

from codex_py.api.approvals import frozen


@frozen
class Suspension:
    """Makes a call that needs an approval suspend the run."""

    folder: Path
    """The absolute path of the folder for requests."""
    lifetime_s: float
    """The time after which a request expires."""
    key: bytes
    """The key that signs the requests."""
    answer: Path | None = None
    """The file of the request that a person has decided on. It goes with `resume`: the session
    continues with the call of the request."""
    is_approved: bool = False
    """The person's decision."""
    because: str | None = None
    """The reason of a refusal, for the model."""
    options: tuple[str, ...] = ()
    """The options of this run. The user is told a command that continues, which repeats them."""
