"""The package files agree with the code: dependencies, executables, interfaces, installed files."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from catkin_pkg.package import Package, parse_package
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from source_tree import PACKAGES, ROOT, imports, modules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Modules whose distribution has another name, and distributions whose rosdep key has another name.
DISTRIBUTIONS = {'yaml': 'pyyaml', 'serial': 'pyserial'}
ROSDEP = {'pyyaml': 'python3-yaml', 'pyserial': 'python3-serial'}
PIP_KEYS = {'mujoco', 'rosbags'}
WITHOUT_KEY = {
    'c3d',
    'openvr',
    'optuna',
    'pysurvive',
}  # unknown to rosdep: imported on use, or by an emulator of the device
ROS_PACKAGES = {'rclpy', 'ament_index_python', 'tf_transformations'}
INTERFACES = sorted([*ROOT.glob('msg/*.msg'), *ROOT.glob('srv/*.srv')])


def project() -> dict[str, object]:
    return tomllib.loads((ROOT / 'pyproject.toml').read_text(encoding='utf-8'))['project']


def manifest() -> Package:
    return parse_package(str(ROOT / 'package.xml'))


def third_party_imports() -> dict[str, list[str]]:
    """Return the external imports of the packages, each module with the places that import it eagerly."""
    found: dict[str, list[str]] = {}
    for item in (item for file in modules(*PACKAGES) for item in imports(file)):
        if item.top not in {*PACKAGES, 'soft_robot_suite', *sys.stdlib_module_names}:
            found.setdefault(item.top, []).extend([] if item.lazy else [str(item)])
    return found


def is_ros(module: str) -> bool:
    return module in ROS_PACKAGES or module.endswith(('_msgs', '_srvs', '_interfaces'))


def test_package_xml_is_valid_and_names_the_version_of_pyproject() -> None:
    package = manifest()
    package.validate()
    assert package.get_build_type() == 'ament_cmake'
    assert [str(license_) for license_ in package.licenses] == [project()['license']] == ['Apache-2.0']
    assert package.version == project()['version']


def test_package_xml_covers_what_is_imported() -> None:
    declared = {dependency.name for dependency in manifest().exec_depends}
    missing = []
    for module, places in third_party_imports().items():
        name = DISTRIBUTIONS.get(module, module)
        key = module if is_ros(module) else ROSDEP.get(name, f'python3-{name}' + '-pip' * (name in PIP_KEYS))
        may_be_absent = module in WITHOUT_KEY and all('/emulators/' in place for place in places)
        if key not in declared and not may_be_absent:
            missing.append(f'{key} for {module}: {places}')
    assert missing == []


def test_pyproject_covers_what_is_imported() -> None:
    extras = project()['optional-dependencies']
    lines = [*project()['dependencies'], *(line for group in extras.values() for line in group)]
    declared = {canonicalize_name(Requirement(line).name) for line in lines}
    wanted = {DISTRIBUTIONS.get(module, module) for module in third_party_imports() if not is_ros(module)}
    assert wanted - declared - {'pysurvive'} == set()


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / 'pyproject.toml').read_text(encoding='utf-8')
    lines = re.findall(r'^    "[\w-]+[<>=~].*$', text, re.MULTILINE)
    assert len(lines) > 15
    assert [line for line in lines if ' # ' not in line] == []


def test_ros_wheels_are_pinned_and_agree_with_pyproject() -> None:
    text = (ROOT / 'requirements' / 'ros.txt').read_text(encoding='utf-8')
    pins = [
        Requirement(line.partition('#')[0]) for line in text.splitlines() if line.partition('#')[0].strip()
    ]
    assert [str(pin) for pin in pins if not re.fullmatch(r'==[\d.]+', str(pin.specifier))] == []
    ranges = {Requirement(line).name: Requirement(line).specifier for line in project()['dependencies']}
    shared = [pin for pin in pins if pin.name in ranges]
    assert [pin.name for pin in shared] == ['numpy']
    assert all(str(pin.specifier).lstrip('=') in ranges[pin.name] for pin in shared)


def executables(package: str) -> dict[str, str]:
    """Return the declared executables of a package: name to module:function."""
    config = configparser.ConfigParser()
    config.read(ROOT / package / 'setup.cfg')
    lines = config['options.entry_points']['console_scripts'].split('\n')[1:]
    return dict(line.split(' = ') for line in lines)


def functions(file: Path) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding='utf-8'))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize('package', PACKAGES)
def test_executables_name_functions_of_their_package(package: str) -> None:
    for target in executables(package).values():
        module, function = target.split(':')
        assert module.startswith(f'{package}.')
        assert function in functions(Path(*module.split('.')).with_suffix('.py')), target


@pytest.mark.parametrize('package', PACKAGES)
def test_every_node_is_an_executable_of_its_own_name(package: str) -> None:
    nodes = [file for file in modules(f'{package}/nodes') if 'main' in functions(file)]
    wanted = {file.stem: f'{package}.nodes.{file.stem}:main' for file in nodes}
    assert wanted.items() <= executables(package).items()


@pytest.mark.parametrize('file', INTERFACES, ids=lambda path: path.name)
def test_every_field_says_its_unit_or_frame(file: Path) -> None:
    fields = [line for line in file.read_text(encoding='utf-8').splitlines() if line and line[0] not in '#-']
    assert fields
    assert [line for line in fields if not re.search(r'# .*(\[[^]]+\]|frame)', line)] == []


RESOURCES = (
    'from soft_dynamics.description.robot_files import *; print(share_folder()); '
    '[robot_file(n) for n in robot_names()]'
)


def share_folder_seen_from(folder: Path) -> Path:
    """Return the share folder that a new Python process finds when the packages come from `folder`."""
    env = {**os.environ, 'PYTHONPATH': str(folder)}
    command = [sys.executable, '-c', RESOURCES]
    return Path(
        subprocess.run(command, env=env, cwd='/', check=True, capture_output=True, text=True).stdout.strip()
    )


def test_shipped_files_are_found_in_the_source_tree() -> None:
    assert share_folder_seen_from(ROOT) == ROOT


def test_shipped_files_are_found_after_pip_install(tmp_path: Path) -> None:
    options = [
        '--quiet',
        '--no-deps',
        '--no-build-isolation',
        '--no-index',
        '--target',
        str(tmp_path / 'site'),
    ]
    source = copy_of_tracked_files(tmp_path / 'source')
    subprocess.run([sys.executable, '-m', 'pip', 'install', *options, str(source)], check=True)
    share = share_folder_seen_from(tmp_path / 'site')
    assert share == tmp_path / 'site' / 'share' / 'soft_robot_suite'
    for folder, pattern in (('robots', '*.yaml'), ('msg', '*.msg')):
        shipped = {path.name for path in (ROOT / folder).glob(pattern)}
        assert {path.name for path in (share / folder).iterdir()} == shipped
    offline = {path.name for path in (tmp_path / 'site' / 'bin').iterdir()}
    assert offline == {'identify', 'import_recording', 'validate'}
    use = {**os.environ, 'PYTHONPATH': str(tmp_path / 'site'), 'AMENT_PREFIX_PATH': ''}
    for name in sorted(offline):
        command = [sys.executable, str(tmp_path / 'site' / 'bin' / name), '--help']
        assert f'usage: {name}' in subprocess.check_output(command, env=use, cwd='/', text=True)
    types = 'from soft_dynamics.bags.message_types import *; print(*standard_types().types)'
    known = subprocess.check_output([sys.executable, '-c', types], env=use, cwd='/', text=True)
    assert 'soft_robot_suite/msg/ChamberPressures' in known


def test_commands_of_pip_are_those_of_the_packages() -> None:
    declared = {**executables('soft_estimation'), **executables('soft_dynamics')}
    assert project()['scripts'].items() <= declared.items()
    assert {name for name, target in declared.items() if '.nodes.' not in target} == project()[
        'scripts'
    ].keys()


def test_package_xml_names_what_launch_files_and_xacro_need() -> None:
    declared = {dependency.name for dependency in manifest().exec_depends}
    packages = {
        package
        for file in (ROOT / 'launch').glob('*.xml')
        for package in re.findall(r'pkg="(\w+)"', file.read_text(encoding='utf-8'))
    }
    needed = {'launch_xml', 'ros2launch', 'xacro', *packages} - {'soft_robot_suite'}
    assert needed <= declared
    assert 'rviz2' in packages


def test_package_xml_names_no_ros_package_that_nobody_imports() -> None:
    declared = {dependency.name for dependency in manifest().exec_depends if is_ros(dependency.name)}
    assert declared - {'std_msgs'} <= third_party_imports().keys()


def copy_of_tracked_files(target: Path) -> Path:
    """Copy the files that pip needs to build; a build in place would leave its folders in the repository."""
    for name in (*PACKAGES, 'robots', 'config', 'msg'):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name)
    for name in ('setup.py', 'pyproject.toml', 'LICENSE'):
        shutil.copy(ROOT / name, target / name)
    return target


@pytest.mark.ros
def test_shipped_files_are_found_after_the_ament_build() -> None:
    prefix = ROOT / 'install'
    (site,) = prefix.glob('lib/python3*/site-packages')
    assert share_folder_seen_from(site) == prefix / 'share' / 'soft_robot_suite'
