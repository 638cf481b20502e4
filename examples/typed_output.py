"""An answer as a pydantic model: the changelog entry of what is not committed."""

from typing import Literal

from pydantic import BaseModel, Field

from codex_py import Agent


class Entry(BaseModel):
    kind: Literal["added", "changed", "fixed"]
    text: str = Field(description="One sentence for users, in the past tense.")


result = Agent(output_type=Entry).run_sync("Write the changelog entry of my changes")
print(f"{result.output.kind}: {result.output.text}")
