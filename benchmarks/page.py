"""Replace the part of a page that a benchmark writes."""

from __future__ import annotations

from pathlib import Path


def replace_part(page: Path, begin: str, end: str, part: str) -> None:
    """Replace the text between two markers of a page. Raises SystemExit if the page lacks them."""
    before, has_begin, rest = page.read_text(encoding='utf-8').partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        raise SystemExit(f'{page.name} has no {begin} ... {end}')
    page.write_text(f'{before}{begin}\n\n{part}\n\n{end}{after}', encoding='utf-8')
