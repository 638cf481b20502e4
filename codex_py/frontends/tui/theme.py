"""Styles of the terminal's text: palettes for dark and light terminals, and the terminal's colours.

The terminal's own 16 colours are used if it has no others, or if its background is unknown: they
suit any background.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.errors import ConfigError

ColorSystem: TypeAlias = Literal["standard", "256", "truecolor"]

# Every background comes with the colour of its text, so that the text is readable on any terminal.
STYLES: Final[Mapping[str, tuple[str, str, str]]] = {
    "user": ("bold", "bold #e8eaed on #2b3038", "bold #1f2328 on #e8eaec"),
    "accent": ("cyan", "#6cc7e0", "#0a6c86"),
    "heading": ("bold", "bold #8ab8f5", "bold #0b57a4"),
    "title": ("bold underline", "bold underline #8ab8f5", "bold underline #0b57a4"),
    "strong": ("bold", "bold", "bold"),
    "emphasis": ("italic", "italic", "italic"),
    "struck": ("strike", "strike", "strike"),
    "quiet": ("dim", "#8d949e", "#636b74"),
    "thought": ("dim italic", "italic #8d949e", "italic #636b74"),
    "action": ("bold", "bold", "bold"),
    "text": ("", "", ""),
    "code": ("cyan", "#8fd0c6", "#0f6b5f"),
    "code block": ("", "#d7dae0 on #1e2227", "#24292f on #f3f4f5"),
    "link": ("underline", "underline #8ab8f5", "underline #0b57a4"),
    "ok": ("green", "#7ec98f", "#1a7f37"),
    "error": ("red", "#f28b82", "#c5221f"),
    "warning": ("yellow", "#e5c07b", "#8a5a00"),
    "added": ("green", "#dcebdf on #16301d", "#14321d on #dcf5e2"),
    "added word": ("bold green", "#ffffff on #2a5c38", "#06290f on #a9e5b8"),
    "removed": ("red", "#f0dcdc on #3a1a1d", "#4a1613 on #fde5e4"),
    "removed word": ("bold red", "#ffffff on #74302f", "#3d0704 on #f7b3b0"),
    "plan": ("magenta", "#c99be6", "#7a3e9d"),
    "step": ("bold cyan", "bold #6cc7e0", "bold #0a6c86"),
    "step done": ("dim strike", "strike #8d949e", "strike #636b74"),
    "selected": ("reverse", "reverse", "reverse"),
    # The parts of a program.
    "syntax comment": ("dim", "italic #a8b0ba", "italic #59616a"),
    "syntax keyword": ("magenta", "#d59ae6", "#8a2ca8"),
    "syntax name": ("bright_blue", "#8ab8f5", "#0b57a4"),
    "syntax type": ("yellow", "#e5c07b", "#7d5200"),
    "syntax string": ("green", "#a3d195", "#1e6534"),
    "syntax number": ("cyan", "#e6a877", "#95400a"),
    "syntax markup": ("bold", "bold", "bold"),
}
"""Each style in 16 colours, on a dark and on a light background."""

_ON_LIGHT = {
    # The bright half of most palettes, and their yellow, cannot be read on white.
    "warning": "magenta",
    "syntax name": "blue",
    "syntax type": "blue",
}

_ATTRIBUTES = {"bold", "dim", "italic", "underline", "strike", "reverse"}
_IN_FRAGMENTS = (
    "quiet",
    "accent",
    "error",
    "warning",
    "ok",
    "user",
    "plan",
    "action",
    "strong",
    "selected",
)
"""Styles that fragments name too, such as `class:quiet`."""
_COLOR = (
    "(?:#[0-9a-f]{6}|(?:bright_)?(?:black|red|green|yellow|blue|magenta|cyan|white))"
)
_STYLE = re.compile(rf"(?:{'|'.join(_ATTRIBUTES)}|(?:on )?{_COLOR}| )*")

_LINKING = (
    "KITTY_WINDOW_ID",
    "WT_SESSION",
    "WEZTERM_PANE",
    "GHOSTTY_RESOURCES_DIR",
    "KONSOLE_VERSION",
    "ALACRITTY_WINDOW_ID",
)
"""Variables that terminals set which support links."""
_LINKING_PROGRAMS = {"iTerm.app", "WezTerm", "vscode", "ghostty"}
"""Such terminals, by `TERM_PROGRAM`."""
PROMPT = "\u203a"


@dataclass(frozen=True, slots=True)
class Theme:
    """The look of the terminal's text: what the terminal can show, and the user's own styles."""

    color: bool = True
    """False: no colours; bold and dim stay unless the terminal is dumb."""
    unicode: bool = True
    """False: the terminal gets only ASCII."""
    background: Literal["dark", "light", "unknown"] = "unknown"
    color_system: ColorSystem = "standard"
    dumb: bool = False
    """True if the terminal knows no control sequences except for moving the cursor."""
    shell: str = ""
    """The path of the user's shell. It and the system's shells are left out of shown commands."""
    cwd: str = ""
    """The session's working directory; a command that runs elsewhere shows its own."""
    links: bool = False
    """True if the terminal opens links of OSC 8."""
    folds: bool = True
    """True: cells show only the ends of long content, and the key that shows all of it."""
    own: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)
    """The user's styles, which override those of the palette."""

    def style(self, name: str) -> str:
        """The style of a part of the text, for rich; empty if the terminal has no styles."""
        if self.dumb:
            return ""
        style = self.own.get(name, self._palette_style(name))
        if not self.color:
            style = " ".join(word for word in style.split() if word in _ATTRIBUTES)
        return style

    def _palette_style(self, name: str) -> str:
        basic, on_dark, on_light = STYLES[name]
        has_few_colors = self.color_system == "standard"
        match self.background:
            case "unknown":
                return basic
            case "dark" if has_few_colors:
                return basic
            case "dark":
                return on_dark
            case "light" if has_few_colors:
                return _ON_LIGHT.get(name, basic)
            case "light":
                return on_light

    @property
    def asks_for_background(self) -> bool:
        """True if the colours depend on the background, and only the terminal knows it."""
        return (
            self.background == "unknown"
            and self.color
            and self.color_system != "standard"
        )

    def fragment_styles(self) -> dict[str, str]:
        """The styles for prompt-toolkit, by the names that fragments use."""
        return {name: _for_fragments(self.style(name)) for name in _IN_FRAGMENTS}


def _for_fragments(style: str) -> str:
    """Convert a style of rich to one of prompt-toolkit."""
    words: list[str] = []
    for word in style.replace("on ", "bg:").split():
        color = word.removeprefix("bg:")
        is_named = color not in _ATTRIBUTES and not color.startswith("#")
        if is_named:
            word = word.replace(color, f"ansi{color.replace('_', '')}")
        words.append(word)
    return " ".join(words)


def own_styles(path: Path) -> Mapping[str, str]:
    """The user's styles, by name: `user = "bold #ffffff on #202020"`; none without the file.

    Raises:
        ConfigError: the file cannot be read, or holds an invalid style.
    """
    try:
        styles = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    for name, style in styles.items():
        if name not in STYLES:
            known = ", ".join(STYLES)
            raise ConfigError(f"{path}: there is no style {name!r}; there are {known}")
        if not (isinstance(style, str) and _STYLE.fullmatch(style)):
            raise ConfigError(f'{path}: {name!r} is not like "bold #ffffff on #202020"')
    return styles


def background_of(report: str) -> Literal["dark", "light"] | None:
    """The background in a report of OSC 11, `rgb:1e1e/1e1e/1e1e`; None if it makes no sense."""
    match = re.fullmatch("rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+).*", report)
    if match is None:
        return None
    red, green, blue = map(_share, match.groups())
    # The weights with which the eye sees these colours.
    brightness = 0.299 * red + 0.587 * green + 0.114 * blue
    if brightness > 0.5:
        return "light"
    return "dark"


def _share(digits: str) -> float:
    """The part that a hexadecimal number is of the highest one with as many digits."""
    return int(digits, 16) / (16 ** len(digits) - 1)


def terminal_theme(
    environment: Mapping[str, str],
    wanted: object = None,
    *,
    cwd: str = "",
    own: Mapping[str, str] | None = None,
) -> Theme:
    """Read the abilities of the terminal from the environment.

    `wanted` is `tui.theme`: `dark` and `light` count; the palettes that Codex names there do not.
    """
    dumb = environment.get("TERM", "") in {"", "dumb"}
    background = wanted
    if background not in ("dark", "light"):
        background = _told_background(environment)
    return Theme(
        color=not environment.get("NO_COLOR") and not dumb,
        unicode=_takes_utf8(environment),
        background=background,
        color_system=_color_system(environment),
        dumb=dumb,
        shell=environment.get("SHELL", ""),
        cwd=cwd,
        links=not dumb and knows_links(environment),
        own=own or {},
    )


def _told_background(
    environment: Mapping[str, str],
) -> Literal["dark", "light", "unknown"]:
    """The background that some terminals tell in `COLORFGBG`, as `foreground;background`."""
    number = environment.get("COLORFGBG", "").rpartition(";")[2]
    if not number:
        return "unknown"
    # The numbers of the palette: these are whites.
    if number in {"7", "15"}:
        return "light"
    return "dark"


def _color_system(environment: Mapping[str, str]) -> ColorSystem:
    if environment.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return "truecolor"
    if "256" in environment.get("TERM", ""):
        return "256"
    return "standard"


def _takes_utf8(environment: Mapping[str, str]) -> bool:
    """True unless the locale names another character set.

    `C` and `POSIX` name none: as in Codex, the terminal is assumed to be a modern one.
    """
    # The first variable that is set decides, as setlocale(3) says.
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        locale = environment.get(name)
        if locale:
            return locale in {"C", "POSIX"} or "utf" in locale.lower()
    return True


def knows_links(environment: Mapping[str, str]) -> bool:
    """True if the terminal is known to support links of OSC 8."""
    if any(environment.get(name) for name in _LINKING):
        return True
    if environment.get("TERM_PROGRAM", "") in _LINKING_PROGRAMS:
        return True
    vte = environment.get("VTE_VERSION", "")
    return vte.isdigit() and int(vte) >= 5000
