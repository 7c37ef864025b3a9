"""The rules on who may import whom, read from the source text."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from source_tree import PACKAGES, ROOT, Import, imports, imports_of, modules

ROS = re.compile(
    r'rclpy|soft_robot_suite|launch|launch_ros|tf2_\w+|tf_transformations|transforms3d|'
    r'ament_index_python|\w+_(msgs|srvs|interfaces)'
)
BOTTOM = {'numpy', 'scipy', 'numba', 'yaml'}  # all that soft_dynamics stands on
BAGS = Path('soft_dynamics', 'bags')  # which also stands on the library for bags
MAX_LINES = 600


def is_shell(name: str) -> bool:
    """Whether a dotted module belongs to the ROS shells around the cores."""
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


def test_packages_do_not_need_the_repository() -> None:
    outside = {'tools', 'test', 'examples', 'benchmarks', 'source_tree'}
    assert [str(found) for found in all_imports() if found.top in outside] == []


def test_no_python_package_takes_the_name_of_the_messages() -> None:
    assert not (ROOT / 'soft_robot_suite').exists()
    assert not (ROOT / 'soft_robot_suite.py').exists()


def test_every_folder_of_a_package_is_a_package() -> None:
    folders = {file.parent for file in modules(*PACKAGES)}
    assert sorted(str(folder) for folder in folders if not (ROOT / folder / '__init__.py').exists()) == []


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
