#!/usr/bin/env python3
"""Run a command in the environment of the suite.

    tools/run.py [--own-domain] COMMAND [ARGUMENT ...]

The command finds the Python of .venv, the sources (before the built messages in install/), the executables of the
package (such as `dynamics`), and ROS 2 from the wheels in .venv or from the sourced installation.
--own-domain takes a ROS_DOMAIN_ID that no other such run uses.
"""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from soft_dynamics.kernel_cache import kernel_cache  # noqa: E402

VENV = ROOT / '.venv'
INSTALL = ROOT / 'install'
DOMAINS = range(1, 102)  # 102 and above collide with Linux's ephemeral ports


def environment(base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a command of the suite, based on `base`."""
    env = {
        key: value
        for key, value in base.items()
        if key not in ('MAKEFLAGS', 'MFLAGS', 'MAKELEVEL', 'PYTHONHOME')
    }
    env.pop('PYTHONDONTWRITEBYTECODE', None)  # with it, each node compiles its sources at each start
    env.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    env.setdefault('ROS_LOG_DIR', str(ROOT / 'log' / 'ros'))
    env['NUMBA_CACHE_DIR'] = str(kernel_cache(ROOT))
    env.setdefault('OMP_WAIT_POLICY', 'PASSIVE')  # waiting threads must not use the core of another node
    env.setdefault('OPENBLAS_NUM_THREADS', '1')  # two threads take ten times longer on busy cores
    env['VIRTUAL_ENV'] = str(VENV)

    wheels = (VENV / 'share' / 'rclpy').is_dir()
    if wheels:
        for name in ('PYTHONPATH', 'LD_LIBRARY_PATH', 'AMENT_PREFIX_PATH', 'CMAKE_PREFIX_PATH', 'ROS_DISTRO'):
            env.pop(name, None)
        env['RMW_IMPLEMENTATION'] = 'rmw_fastrtps_cpp'
        # If LD_LIBRARY_PATH is set here, the start-up hook of the wheels does not restart each Python to set it.
        env['_ROS_WHEELS_BOOTSTRAP_COMPLETE'] = '1'
    prefixes = [INSTALL, VENV] if wheels else [INSTALL]
    wheel_libraries = sorted(VENV.glob('lib/python3*/site-packages/ros_*.libs')) if wheels else []
    _prepend(env, 'PATH', [VENV / 'bin', INSTALL / 'lib' / 'soft_robot_suite'])
    _prepend(env, 'PYTHONPATH', [ROOT, *sorted(INSTALL.glob('lib/python3*/site-packages'))])
    _prepend(env, 'LD_LIBRARY_PATH', [prefix / 'lib' for prefix in prefixes] + wheel_libraries)
    _prepend(env, 'AMENT_PREFIX_PATH', [prefix for prefix in prefixes if prefix.is_dir()])
    _prepend(env, 'CMAKE_PREFIX_PATH', [prefix for prefix in prefixes if prefix.is_dir()])
    return env


def _prepend(env: dict[str, str], name: str, paths: list[Path]) -> None:
    new = [str(path) for path in paths]
    old = [path for path in env.get(name, '').split(os.pathsep) if path and path not in new]
    env[name] = os.pathsep.join(new + old)


def own_domain() -> str:
    """Claim a ROS domain for this process and its children, and return its number.

    The claim is an abstract socket, which the kernel drops when the last holder ends, even by a kill.
    """
    for domain in DOMAINS:
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f'\0soft_robot_suite/domain/{domain}')
        except OSError:
            claim.close()
            continue
        claim.set_inheritable(True)
        claim.detach()
        return str(domain)
    raise SystemExit(
        f'run: all {len(DOMAINS)} ROS domains are in use by runs of this suite; end some of them'
    )


def main() -> None:
    arguments = sys.argv[1:]
    own = arguments[:1] == ['--own-domain']
    command = arguments[own:]
    if not command or command[0].startswith('-'):
        raise SystemExit(__doc__)
    if not (VENV / 'bin' / 'python').exists() or not INSTALL.is_dir():
        raise SystemExit('run: the environment is not set up; run `make setup` first')
    env = environment()
    if own:
        env['ROS_DOMAIN_ID'] = own_domain()
    try:
        os.execvpe(command[0], command, env)
    except OSError as error:
        raise SystemExit(f'run: cannot start {command[0]!r}: {error.strerror}') from None


if __name__ == '__main__':
    main()
