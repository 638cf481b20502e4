"""Requests to the model that a feature sends itself, beside those of the turn."""

from codex_py.app.features.budget import BudgetFeature
from codex_py.app.model import configured_provider
from codex_py.app.options import SessionSetup
from codex_py.protocol.extension import Thread
from codex_py.protocol.stream import ModelStream


def counted_stream(setup: SessionSetup, thread: Thread) -> ModelStream:
    """Connect to the configured model of a session. Requests count towards the session's budget.

    Args:
        setup: the setup of the feature.
        thread: the session that the feature belongs to.
    """
    assert setup.connect is not None
    provider = configured_provider(setup.config, setup.environment)
    stream = setup.connect(provider).stream
    budget = thread.feature(BudgetFeature)
    if budget is None:
        return stream
    return budget(thread).wrap_model(stream)
