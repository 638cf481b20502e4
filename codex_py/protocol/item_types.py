"""The items of a response, for annotations. LIGHT: pydantic, which they are made of, is not loaded before the first
request is out."""

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from codex_py.protocol.items import CustomToolCallOutput, FunctionCallOutput, ResponseItem

    OutputItem: TypeAlias = FunctionCallOutput | CustomToolCallOutput
else:
    ResponseItem = OutputItem = Any

__all__ = ["OutputItem", "ResponseItem"]
