"""Import rules of the packages, read from the source text."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
from source_tree import PACKAGES, ROOT, Import, imports, imports_of, modules

ROS = re.compile(
    r'rclpy|soft_robot_suite|launch|launch_ros|tf2_\w+|tf_transformations|transforms3d|'
    r'ament_index_python|\w+_(msgs|srvs|interfaces)'
)
BOTTOM = {'numpy', 'scipy', 'numba', 'yaml'}  # all dependencies of soft_dynamics
BAGS = Path('soft_dynamics', 'bags')  # also depends on the bag library
KERNELS = 'soft_dynamics.kernels'
ROTATIONS = 'soft_dynamics.geometry.so3'  # also compiled; part of the formulas of poses and curves
MODEL = 'soft_dynamics.model'
MAX_LINES, MAX_AT_ROOT = 600, 10


def is_shell(name: str) -> bool:
    """Return whether a dotted module belongs to the ROS layer around the cores."""
    return name.split('.')[1:2] == ['nodes'] or name.split('.')[:2] == ['soft_dynamics', 'ros']


def dotted(file: Path) -> str:
    return '.'.join(file.with_suffix('').parts)


def all_imports() -> list[Import]:
    return [found for file in modules(*PACKAGES) for found in imports(file)]


def core_imports() -> list[Import]:
    return [found for found in all_imports() if not is_shell(dotted(found.file))]


def test_cores_know_no_ros() -> None:
    assert [str(found) for found in core_imports() if ROS.fullmatch(found.top)] == []


def test_cores_do_not_use_their_ros_shells() -> None:
    assert [str(found) for found in core_imports() if found.top in PACKAGES and is_shell(found.name)] == []


def test_packages_meet_in_soft_dynamics_only() -> None:
    strangers = [
        str(found)
        for found in all_imports()
        if found.top in PACKAGES and found.top not in ('soft_dynamics', found.file.parts[0])
    ]
    assert strangers == []


def test_soft_dynamics_stands_on_numerics_only() -> None:
    allowed = {'soft_dynamics', *BOTTOM, *sys.stdlib_module_names}
    bottom = [found for found in core_imports() if found.file.parts[0] == 'soft_dynamics']
    strangers = [found for found in bottom if found.top not in allowed]
    assert [str(found) for found in strangers if (found.file.parent, found.top) != (BAGS, 'rosbags')] == []


def package_of(found: Import) -> str:
    """Return the folder of the module that an import names, or of the module that contains the imported name."""
    parts = found.name.split('.')
    while not ROOT.joinpath(*parts).with_suffix('.py').is_file() and not ROOT.joinpath(*parts).is_dir():
        parts.pop()
    return '.'.join(parts if ROOT.joinpath(*parts).is_dir() else parts[:-1])


def test_kernels_know_numbers_only() -> None:
    inside = [
        found for file in modules('soft_dynamics/kernels') for found in imports(file) if found.top in PACKAGES
    ]
    assert inside
    assert [
        str(found)
        for found in inside
        if package_of(found) != KERNELS and not found.name.startswith(ROTATIONS)
    ] == []


def test_models_import_kernels_and_not_the_other_way_round() -> None:
    below = modules('soft_dynamics/kernels', 'soft_dynamics/description', 'soft_dynamics/timing')
    upwards = [
        found
        for file in below
        for found in imports(file)
        if found.top in PACKAGES and package_of(found) == MODEL
    ]
    assert upwards == []
    assert any(
        package_of(found) == KERNELS
        for file in modules('soft_dynamics/model')
        for found in imports(file)
        if found.top in PACKAGES
    )


def test_the_folder_of_kernels_imports_nothing_by_itself() -> None:
    assert imports(Path('soft_dynamics', 'kernels', '__init__.py')) == []


def test_packages_do_not_need_the_repository() -> None:
    outside = {'tools', 'test', 'examples', 'benchmarks', 'source_tree'}
    assert [str(found) for found in all_imports() if found.top in outside] == []


def test_no_python_package_takes_the_name_of_the_messages() -> None:
    assert not (ROOT / 'soft_robot_suite').exists()
    assert not (ROOT / 'soft_robot_suite.py').exists()


def test_every_folder_of_a_package_is_a_package() -> None:
    folders = {file.parent for file in modules(*PACKAGES)}
    assert sorted(str(folder) for folder in folders if not (ROOT / folder / '__init__.py').exists()) == []


@pytest.mark.parametrize('package', PACKAGES)
def test_the_root_of_a_package_has_few_modules(package: str) -> None:
    at_root = [file for file in modules(package) if file.parent == Path(package) and file.stem != '__init__']
    assert len(at_root) <= MAX_AT_ROOT, at_root


def test_one_idea_per_file() -> None:
    lengths = {
        file: len((ROOT / file).read_text(encoding='utf-8').splitlines())
        for file in modules(*PACKAGES, 'tools', 'test')
    }
    assert [f'{file}: {length} lines' for file, length in lengths.items() if length > MAX_LINES] == []


def test_imports_are_found_wherever_they_stand() -> None:
    text = 'import a.b\nfrom c import d\nfrom . import e\nfrom ..f import g\ndef h():\n    import i\n'
    found = list(imports_of(ast.parse(text), Path('soft_control/nodes/x.py')))
    assert [item.name for item in found] == ['a.b', 'c.d', 'soft_control.nodes.e', 'soft_control.f.g', 'i']
    assert [item.lazy for item in found] == [False] * 4 + [True]
