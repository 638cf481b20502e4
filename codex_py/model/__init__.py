import sys

# If click is installed, httpx imports its own command line, and rich with it: 124 ms instead of 69.
# None in `sys.modules` makes that import fail, which httpx expects. This must run before the first
# import of httpx. It does so, because this module is imported before every other of its package.
sys.modules.setdefault("httpx._main", None)  # pyright: ignore[reportArgumentType]
