"""Text with styles, as prompt-toolkit takes it."""

from typing import TypeAlias

from prompt_toolkit.formatted_text import StyleAndTextTuples

Fragments: TypeAlias = StyleAndTextTuples
"""`(style, text)`, one after the other."""
