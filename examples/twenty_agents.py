"""Twenty agents at once, in one process and one event loop."""

import asyncio

from codex_py import Agent, CodexError


async def capital(country: str) -> str:
    async with Agent(ephemeral=True, instructions="Answer in one word.") as agent:
        try:
            return (await agent.run(f"What is the capital of {country}?")).text
        except CodexError as error:
            return f"({error.code})"


async def main() -> None:
    countries = [
        *("Austria", "Belgium", "Croatia", "Denmark", "Estonia", "Finland", "Greece"),
        *("Hungary", "Iceland", "Japan", "Kenya", "Latvia", "Malta", "Norway", "Oman"),
        *("Poland", "Qatar", "Romania", "Serbia", "Tunisia"),
    ]
    for country, answer in zip(
        countries, await asyncio.gather(*map(capital, countries)), strict=True
    ):
        print(f"{country}: {answer}")


asyncio.run(main())
