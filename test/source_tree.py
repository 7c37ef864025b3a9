"""The repository as text: its modules and their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ('soft_dynamics', 'soft_estimation', 'soft_control', 'soft_hw_bridge')


class Import(NamedTuple):
    """An import statement: its place and the dotted name that it imports."""

    file: Path  # relative to the root
    line: int
    name: str
    lazy: bool  # inside a function: runs on call, not on import

    @property
    def top(self) -> str:
        return self.name.partition('.')[0]

    def __str__(self) -> str:
        return f'{self.file}:{self.line} imports {self.name}'


def modules(*folders: str) -> list[Path]:
    """Return the Python files of some folders, relative to the root."""
    return sorted(path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob('*.py'))


@cache
def imports(file: Path) -> list[Import]:
    """Return the imports of a file of the repository; `from a import b` counts as a.b, since b may be a module."""
    return list(imports_of(ast.parse((ROOT / file).read_text(encoding='utf-8')), file))


def imports_of(tree: ast.AST, file: Path, lazy: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name, lazy)
        elif isinstance(node, ast.ImportFrom):
            package = file.parent.parts[: len(file.parent.parts) - node.level + 1] if node.level else ()
            base = '.'.join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(file, node.lineno, f'{base}.{alias.name}', lazy)
        else:
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports_of(node, file, lazy or is_function)
