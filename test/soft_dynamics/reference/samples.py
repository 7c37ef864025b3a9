"""One irregular robot per model: unequal segments, tilted base, unusual gravity, a load at the tip."""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from .godage import Godage, GodageParameters
from .jensen import Jensen, JensenParameters, JensenSegment, Link
from .mechanics import System
from .mehl import Mehl, MehlParameters, MehlSegment
from .schultz import Schultz, SchultzParameters
from .wang import Wang, WangParameters

R_TILTED = Rotation.from_rotvec([0.4, -0.7, 0.3]).as_matrix()

JENSEN = JensenParameters(
    segments=(
        JensenSegment(),
        JensenSegment(0.18, 0.5, 0.08, chamber_distance=0.05, link=None),
        JensenSegment(
            0.15,
            0.4,
            0.07,
            cubic_stiffness=(2.0, 3.0),
            link=Link(0.1, 0.3, 0.06, R_TILTED @ np.diag([2e-3, 1.5e-3, 1e-3]) @ R_TILTED.T),
        ),
    ),
    tip_load=0.3,
    gravity=(1.0, -2.0, -9.0),
    R_WB=R_TILTED,
    p_WB=(0.1, 0.2, 0.3),
)
MEHL = MehlParameters((MehlSegment(k_theta3=900.0), MehlSegment(0.1, 0.04, 0.12)), 0.05, (1.0, 2.0, -9.0))
SCHULTZ = SchultzParameters(
    radius=(1, 1.1, 0.9, 0.8),
    thread=(1, 1.2, 0.7),
    spring_stiffness=(1.0, 1.5, 2.0),
    gravity=(0.3, -9.81, 0.2),
    damping=0.3,
    R_WB=R_TILTED,
)
WANG = WangParameters(mid_fraction=0.3, tip_load=0.5, gravity=(1.0, 2.0, 9.0), R_WB=R_TILTED)
GODAGE = GodageParameters(
    length=(0.03, 0.034, 0.036, 0.035, 0.035),
    mass=(0.014, 0.013, 0.012, 0.015, 0.015),
    rest_offset=(0.1, 0.2, 0.3, -0.1, 0.2),
    tip_load=0.02,
    gravity=(3.0, -9.0, 0.0),
)

BUILDERS: dict[str, Callable[[], System]] = {
    'jensen lumped': lambda: Jensen(JENSEN, 'lumped'),
    'jensen point': lambda: Jensen(JENSEN, 'point'),
    'jensen distributed': lambda: Jensen(JENSEN, 'distributed'),
    'mehl point': lambda: Mehl(MEHL, 'point'),
    'mehl lumped': lambda: Mehl(MEHL, 'lumped'),
    'mehl distributed': lambda: Mehl(MEHL, 'distributed'),
    'schultz axis_angle': lambda: Schultz(SCHULTZ, 'axis_angle'),
    'schultz zxz': lambda: Schultz(SCHULTZ, 'zxz'),
    'wang reduced': lambda: Wang(WANG, 'reduced'),
    'wang full': lambda: Wang(WANG, 'full'),
    'godage': lambda: Godage(GODAGE),
}
NAMES = tuple(BUILDERS)
ENERGETIC = tuple(name for name in BUILDERS if 'lumped' not in name)  # conservative models


@cache
def build(name: str) -> System:
    """Return the model by name; each is built once."""
    return BUILDERS[name]()
