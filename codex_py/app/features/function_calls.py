"""The tool for calls of Python functions, loaded after the first request was sent."""

from codex_py.tools.python.call import PythonTool

__all__ = ["PythonTool"]
