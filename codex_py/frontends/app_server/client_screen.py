"""The pages that a client shows to its user, for logins in a browser."""

import asyncio


class ClientScreen:
    """A `LoginScreen` whose user sees the pages of the client.

    Attributes:
        address: the address that the client has to open.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.address: asyncio.Future[str] = loop.create_future()

    def visit(self, address: str) -> None:
        self.address.set_result(address)

    async def pasted(self) -> str:
        return await asyncio.get_running_loop().create_future()

    def refuse(self, reason: str) -> None:
        """Ignore a wrong answer: the browser shows it."""
