"""What the calls of Python functions need, loaded behind the first request."""

from codex_py.tools.python.call import PythonTool

__all__ = ["PythonTool"]
