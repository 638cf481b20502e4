"""The arguments of a tool."""

from pydantic import BaseModel, ConfigDict


class ToolParams(BaseModel):
    """Arguments of a tool. Unknown keys are ignored, as Codex does: models invent them."""

    model_config = ConfigDict(extra="ignore", frozen=True)
