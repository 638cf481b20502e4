"""Texts of workflow commands, which GitHub Actions reads from standard output.

https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""


def command_text(text: str) -> str:
    """Return the text as the message of a workflow command, on one line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
