"""A web server that streams a turn as server-sent events, with FastAPI.

Start it with `python examples/server_sent_events.py 8000`, and send a prompt:

    curl -N 'http://127.0.0.1:8000/turn?prompt=Say+hello'

The first event, `thread.started`, has the id of the conversation. `&thread=ID` goes on with it.
"""

import sys
from collections.abc import AsyncIterator
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI
from fastapi.sse import EventSourceResponse

from codex_py import Agent, CodexError, event_json

app = FastAPI()


async def conversation(thread: str | None = None) -> AsyncIterator[Agent]:
    # FastAPI leaves this block when the response has ended, or the client has gone away. That
    # ends the turn, and what it runs.
    async with Agent(resume=thread) as agent:
        yield agent  # noqa: ASYNC119 - FastAPI makes a context manager of this function


@app.get("/turn", response_class=EventSourceResponse)
async def turn(
    prompt: str, agent: Annotated[Agent, Depends(conversation)]
) -> AsyncIterator[dict[str, Any]]:
    try:
        async for event in agent.stream(prompt):
            yield event_json(event)
    except CodexError as error:
        # If the turn had begun, its last event was `turn.failed`.
        yield {"type": "error", "code": error.code, "message": str(error)}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: server_sent_events.py PORT")
    uvicorn.run(app, port=int(sys.argv[1]))
