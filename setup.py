"""Put robots/ and config/ where the ament build puts them: share/soft_robot_suite under the prefix."""

from pathlib import Path

from setuptools import setup

files = [path for folder in ('config', 'robots') for path in Path(folder).rglob('*.yaml')]
setup(data_files=[(f'share/soft_robot_suite/{path.parent}', [str(path)]) for path in sorted(files)])
