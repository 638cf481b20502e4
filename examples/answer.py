"""From nothing to an answer: `python examples/answer.py What does this project do?`"""

import sys

from codex_py import Agent

print(Agent().run_sync(" ".join(sys.argv[1:]) or "Say hello").text)
