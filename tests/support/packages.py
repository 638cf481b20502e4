"""Packages that tests install: a module, and the metadata that an installer would write."""

from collections.abc import Mapping
from pathlib import Path


def install_package(
    folder: Path, module: str, text: str, groups: Mapping[str, Mapping[str, str]]
) -> None:
    """Install a package of one module in a folder that is on `sys.path`.

    Args:
        module: the name of the module; the package is called so, with hyphens.
        groups: the entry points, by group and name.
    """
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    name = module.replace("_", "-")
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    (about / "METADATA").write_text(metadata, encoding="utf-8")
    lines: list[str] = []
    for group, points in groups.items():
        lines.append(f"[{group}]")
        lines += [f"{point} = {target}" for point, target in points.items()]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
