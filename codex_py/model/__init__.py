import sys

# httpx imports its own command line where click is installed, and with it rich: 124 ms in place of 69.
# None in `sys.modules` makes that import fail, which httpx is prepared for. It has to stand before the
# first import of httpx, and every module here that needs httpx comes after this one.
sys.modules.setdefault("httpx._main", None)  # pyright: ignore[reportArgumentType]
