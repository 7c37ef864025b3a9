"""Put robots/, config/ and msg/ where the ament build puts them: share/soft_robot_suite under the prefix."""

from pathlib import Path

from setuptools import setup

shipped = ('config/**/*.yaml', 'robots/**/*.yaml', 'msg/*.msg')
files = [path for pattern in shipped for path in Path().glob(pattern)]
setup(data_files=[(f'share/soft_robot_suite/{path.parent}', [str(path)]) for path in sorted(files)])
