"""Lists the ids of the providers that need no table in the configuration. LIGHT.

`model/providers.toml` has their settings. By these ids, the configuration recognizes the form
`provider/model`.
"""

from typing import Final

LOCAL_PROVIDERS: Final = ("ollama", "lmstudio", "llamacpp", "vllm")
"""Servers on this machine, in the order in which `--oss` looks for them."""
BUILT_IN_PROVIDERS: Final = (
    "openai",
    "anthropic",
    "azure",
    "deepseek",
    "gemini",
    "github",
    "groq",
    "minimax",
    "mistral",
    "moonshot",
    "openrouter",
    "xai",
    "zai",
    *LOCAL_PROVIDERS,
)
