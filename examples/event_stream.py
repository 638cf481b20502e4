"""A server of conversations: each line that a client sends is a prompt, each line that it gets is an event as JSON.

Try it with `python examples/event_stream.py 8000` and `nc 127.0.0.1 8000`. A web socket has the same two loops.
"""

import asyncio
import json
import sys

from codex_py import Agent, CodexError, event_json


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async with Agent() as agent:
        while prompt := (await reader.readline()).decode().strip():
            try:
                async for event in agent.stream(prompt):
                    writer.write(json.dumps(event_json(event)).encode() + b"\n")
                    # Whoever goes away ends the loop, and with it the turn.
                    await writer.drain()
            except CodexError:
                pass  # the client has read `turn.failed`
            except ConnectionError:
                break
    writer.close()


async def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: event_stream.py PORT")
    server = await asyncio.start_server(talk, "127.0.0.1", int(sys.argv[1]))
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
