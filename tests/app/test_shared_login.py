"""Sessions with the same options have one login with ChatGPT, as the threads of a server do."""

import asyncio
import resource
from contextlib import AsyncExitStack

from codex_py.app.options import SessionOptions
from codex_py.app.session import open_session
from codex_py.config.config import load_config
from codex_py.testing import ev_completed, ev_message
from tests.support.chatgpt import ChatGPT
from tests.support.program import Workplace, environment

DONE = [*ev_message("done"), ev_completed()]


def no_room() -> None:
    """Let this process write no file. The session files are not kept, either."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))


def test_a_renewed_login_that_could_not_be_written_serves_every_session(
    place: Workplace,
) -> None:
    """A second login would renew with a token that is used up, and lose the login."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def main(chatgpt: ChatGPT) -> list[str | None]:
        variables = {**environment(place.home), **chatgpt.environment}
        config = load_config(cwd=place.cwd, environment=variables)
        options = SessionOptions(ephemeral=True)
        answers: list[str | None] = []
        async with AsyncExitStack() as stack:
            for _ in range(2):
                opening = open_session(config, options, environment=variables)
                session = await stack.enter_async_context(opening)
                result = await session.run_turn("go")
                answers.append(result.last_message)
        return answers

    with ChatGPT([DONE, DONE]) as chatgpt:
        chatgpt.configure(place.home)
        chatgpt.sign_in(place.home, expires_in_s=-1)
        chatgpt.on_renewal = no_room
        try:
            answers = asyncio.run(main(chatgpt))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (chatgpt.renewals, chatgpt.refused_renewals) == (1, [])
    assert answers == ["done", "done"]
