"""The checks of `codex-py doctor`: the configuration, what it names, and the machine."""
