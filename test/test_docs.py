"""The pages are consistent: links resolve, cited works are listed, formulas survive Markdown."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from source_tree import PACKAGES, ROOT, modules

from tools.figures import FIGURES

PAGES = sorted((ROOT / 'docs').rglob('*.md'))
ALL = [*PAGES, ROOT / 'README.md', ROOT / 'CONTRIBUTING.md']
RUN = 'python3 tools/run.py '
COMMAND = re.compile(
    RUN.join(['(', r'(?:--own-domain )?)?\bpython3? -m ((?:tools|examples|benchmarks|soft_)[\w.]+)'])
)
LINK = re.compile(r'\[[^\]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)')
PLACE = re.compile(r'\[([A-Z][a-z]+), (?:[A-Z][a-z]+, )*(?:eq|sec|ch|[Tt]able|lemma|algorithm)\b')
WORK = re.compile(r'\[([A-Z][a-z]+)\](?!\()')
INLINE_FORMULA = re.compile(r'(?<!\$)\$([^$\n]+)\$')
MAX_FIGURE = 150_000  # [bytes]


def prose(page: Path) -> str:
    """The page without its code and display formulas."""
    return re.sub(r'```.*?```|`[^`\n]*`', '', page.read_text(encoding='utf-8'), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors GitHub gives to the headings of a page."""
    headings = re.findall(r'^#+ (.*)$', page.read_text(encoding='utf-8'), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(prose(page)):
        if target.startswith(('http:', 'https:')):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f'{page.name} links to {target}'
        assert not anchor or anchor in anchors(file), f'{page.name} links to {target}#{anchor}'


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.stem)
def test_inline_formulas_have_nothing_that_markdown_takes_for_its_own(page: Path) -> None:
    for formula in INLINE_FORMULA.findall(prose(page)):
        assert not re.search(r'\\[^a-zA-Z\s]|\*|\|', formula), f'{page.name}: ${formula}$'


@pytest.mark.parametrize('page', ALL, ids=lambda page: page.stem)
def test_commands_run_outside_the_environment(page: Path) -> None:
    """Commands that a reader types in the root folder after `make setup`."""
    text = re.sub(r'<!--.*?-->', '', page.read_text(encoding='utf-8'))
    for line in text.splitlines():
        for before, module in COMMAND.findall(line):
            assert before, f'{page.name}: python -m {module}'
        assert not re.search(r'(?<!python3 )(?<![\w/])tools/run\.py \w', line), f'{page.name}: {line}'


@pytest.mark.parametrize('page', ALL, ids=lambda page: page.stem)
def test_pages_point_to_no_folder_beside_the_project(page: Path) -> None:
    assert '../shared' not in page.read_text(encoding='utf-8')


def texts_of(file: Path) -> list[str]:
    """The string literals of a module without its docstrings."""
    tree = ast.parse(file.read_text(encoding='utf-8'))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [node.value for node in constants if isinstance(node.value, str) and id(node) not in documentation]


def test_messages_of_the_glossary_are_those_of_the_code() -> None:
    """Apart from numbers and <placeholders>; `vented: ` precedes the reason."""
    text = (ROOT / 'docs' / 'glossary.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| (`.*?) \|', text.partition('## Words in messages')[2], re.MULTILINE)
    messages = [message for row in rows for message in re.findall(r'`([^`]+)`', row)]
    assert len(messages) > 10
    code = '\n'.join(text for file in modules(*PACKAGES) for text in texts_of(ROOT / file))
    pieces = {piece for message in messages for piece in re.split(r'<[^>]*>|\d[\d.]* s|vented: ', message)}
    assert sorted(piece for piece in pieces if piece.strip() not in code) == []


def test_cited_works_are_listed() -> None:
    keys = set(re.findall(r'@\w+\{(\w+),', (ROOT / 'docs' / 'references.bib').read_text(encoding='utf-8')))
    texts = [prose(page) for page in PAGES if page.parent.name == 'theory']
    cited = {key for text in texts for key in WORK.findall(text)}
    for file in [*modules(*PACKAGES), *(ROOT / 'examples').glob('*.py')]:
        texts += re.findall(r'""".*?"""', (ROOT / file).read_text(encoding='utf-8'), re.DOTALL)
    cited |= {key for text in texts for key in PLACE.findall(text)}
    assert cited - keys == set()
    assert keys - cited == set(), 'listed but never cited'


@pytest.mark.parametrize('name', FIGURES)
def test_figure_is_small_and_on_its_page(name: str) -> None:
    assert (ROOT / 'docs' / 'figures' / f'{name}.png').stat().st_size < MAX_FIGURE
    page = (ROOT / 'docs' / 'theory' / f'{name}.md').read_text(encoding='utf-8')
    assert f'](../figures/{name}.png)' in page


@pytest.mark.parametrize(
    ('page', 'file'),
    [
        ('filter_sensor', 'toy_sensor.py'),
        ('control_law', 'soft_control/test_new_law.py'),
        ('pressure_device', 'soft_hw_bridge/test_new_device.py'),
    ],
)
def test_worked_examples_are_those_that_a_test_adds_from_outside(page: str, file: str) -> None:
    text = (ROOT / 'docs' / 'adding' / f'{page}.md').read_text(encoding='utf-8')
    example = re.findall(r'```python\n(.*?)```', text, re.DOTALL)[0]
    assert example in (ROOT / 'test' / file).read_text(encoding='utf-8')
