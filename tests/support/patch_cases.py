"""Small trees with patches for them, valid and broken, made from a number."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

_LINES = (
    "a",
    "b",
    "",
    "  c",
    "\td",
    "e  ",
    "é",
    "f\u2013g",
    '"h"',
    "x = 1",
    "}",
    "return",
    "a",
)
_ENDS = ("\n", "\n", "\n", "\r\n", "\r")
_NAMES = ("a.txt", "b.txt", "sub/c.txt", "d e", "ü")


@dataclass(frozen=True, slots=True)
class PatchCase:
    files: dict[str, bytes]
    patch: bytes
    lax: bool = False
    """It, or a file, has something in it that Codex refuses and we may read."""


def patch_case(seed: int) -> PatchCase:
    """The same case for the same number."""
    return _Maker(random.Random(seed)).case()


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._lax = False

    def case(self) -> PatchCase:
        chance = self._chance
        names = chance.sample(_NAMES, chance.randint(1, 4))
        files = {name: self._file() for name in names}
        lines = ["*** Begin Patch"]
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            lines += self._section(files)
        lines.append("*** End Patch")
        if chance.random() < 0.35:
            self._break(lines)
        end = chance.choice(("\n", "\n", "\n", "\r\n"))
        patch = end.join(lines) + chance.choice(("", "\n", "\n\n"))
        if chance.random() < 0.1:
            patch = f"<<'EOF'\n{patch.rstrip()}\nEOF\n"
        encoded = patch.encode()
        if chance.random() < 0.02:
            encoded = encoded.replace(b"a", b"\xff", 1)
        if chance.random() < 0.03:
            name = chance.choice(names)
            files[name] = files[name] + b"\xc3"
            self._lax = True
        return PatchCase(files, encoded, self._lax)

    def _file(self) -> bytes:
        chance = self._chance
        end = chance.choice(_ENDS)
        lines = [chance.choice(_LINES) for _ in range(chance.randint(0, 14))]
        text = "".join(
            [
                line + (end if chance.random() < 0.95 else chance.choice(_ENDS))
                for line in lines
            ]
        )
        return (text.rstrip("\r\n") if chance.random() < 0.2 else text).encode()

    def _section(self, files: dict[str, bytes]) -> list[str]:
        chance = self._chance
        name = chance.choice(list(files) if chance.random() < 0.85 else _NAMES)
        kind = chance.random()
        if kind < 0.15:
            return [f"*** Add File: {name}", *self._added()]
        if kind < 0.25:
            return [f"*** Delete File: {name}"]
        lines = [f"*** Update File: {name}"]
        if chance.random() < 0.15:
            # Onto itself it is lost in Codex, and stays here.
            others = [other for other in _NAMES if other != name]
            lines.append(f"*** Move to: {chance.choice(others)}")
        text = files.get(name, b"").decode(errors="replace")
        content = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        at = 0
        for _ in range(chance.choice((1, 1, 2, 3))):
            at = min(at + chance.randint(0, 3), len(content))
            hunk, at = self._hunk(content, at)
            lines += hunk
        return lines

    def _added(self) -> list[str]:
        return [
            "+" + self._chance.choice(_LINES) for _ in range(self._chance.randint(0, 3))
        ]

    def _hunk(self, content: Sequence[str], at: int) -> tuple[list[str], int]:
        chance = self._chance
        lines: list[str] = []
        has_header = chance.random() < 0.2 and at < len(content)
        if has_header:
            lines.append(f"@@ {content[at]}")
            at += 1
        elif chance.random() < 0.9:
            lines.append("@@")
        until = min(at + chance.randint(1, 4), len(content))
        has_old = False
        for line in content[at:until]:
            if chance.random() < 0.1:
                line = chance.choice(
                    (line.strip(), line + " ", line.replace("\u2013", "-"), "zz")
                )
            mark = chance.choice((" ", " ", "-", "-"))
            lines.append(mark + line if line or chance.random() < 0.5 else mark.strip())
            has_old = True
            if chance.random() < 0.3:
                lines += self._added()
        # Additions alone go elsewhere in Codex if they have a header.
        if not (has_header and not has_old):
            lines += self._added()
        if not has_old and has_header:
            lines.append(" " + content[at - 1])
        if lines and lines[-1].startswith("@@"):
            # The next `@@` will stand right below.
            self._lax = True
        if chance.random() < 0.15 and until >= len(content) - 1:
            lines.append("*** End of File")
        return lines, until

    def _break(self, lines: list[str]) -> None:
        chance = self._chance
        at = chance.randrange(len(lines))
        match chance.randrange(9):
            case 0:
                del lines[at]
            case 1:
                lines[at] = lines[at][1:]
            case 2:
                lines[at] = lines[at] + " "
            case 3:
                lines[at] = " " + lines[at]
            case 4:
                lines.insert(
                    at, chance.choice(("", "  ", "@@", "@@ a", "***", "x", "+y", "-a"))
                )
            case 5:
                other = chance.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 6:
                lines[at] = lines[at].replace(":", "").replace("@@", "@@@")
            case 7:
                lines.insert(
                    at,
                    chance.choice(
                        ("*** End of File", "*** Move to: z", "\\ No newline")
                    ),
                )
            case _:
                lines.insert(
                    0, chance.choice(("```", "apply_patch <<'EOF'", "*** Begin Patch"))
                )
        self._lax = True
