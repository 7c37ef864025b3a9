"""States for comparing models: random ones, and those near singularities of formulas."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class State(NamedTuple):
    """Coordinates, rates and accelerations, nq each."""

    q: Array
    qd: Array
    qdd: Array


def random_states(
    rng: np.random.Generator,
    nq: int,
    count: int,
    *,
    rest: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    bends: Sequence[Sequence[int]] = (),
) -> list[State]:
    """States with q in rest +- scale, rates and accelerations in +- scale (per s, s^2)."""
    draws = rng.uniform(-1, 1, (count, 3, nq)) * np.asarray(scale, float)
    return [State(q + rest, qd, qdd) for q, qd, qdd in draws]


def special_states(
    rng: np.random.Generator,
    nq: int,
    *,
    rest: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    bends: Sequence[Sequence[int]] = (),
) -> dict[str, State]:
    """States by name: straight, 1e-12, 1e-9, 1e-4 from it, each component zero in turn, bends of 2.5 rad.

    `bends` lists the coordinates that together bend a segment, as (u, v) of an arc; there `scale` is 1 rad.
    """
    rest, scale = (np.broadcast_to(np.asarray(a, float), nq) for a in (rest, scale))

    def state(q: Array) -> State:
        return State(rest + scale * q, *(scale * rng.uniform(-1, 1, (2, nq))))

    states = {'straight': state(np.zeros(nq))}
    for size in (1e-12, 1e-9, 1e-4):
        states[f'{size:g} from straight'] = state(size * rng.uniform(-1, 1, nq))
    for k in range(nq):
        q = rng.uniform(-1, 1, nq)
        q[k] = 0
        states[f'component {k} zero'] = state(q)
    q = rng.uniform(-1, 1, nq)
    for bend in bends:
        q[list(bend)] *= 2.5 / np.linalg.norm(q[list(bend)])
    states['bends of 2.5 rad'] = state(q)
    return states


def states_of(model: Any, count: int = 5, seed: int = 7) -> list[State]:
    """Random and special states of a reference model."""
    rng = np.random.default_rng(seed)
    special = special_states(rng, model.nq, **model.layout)
    return [*random_states(rng, model.nq, count, **model.layout), *special.values()]


def shipped_states(robot: Any, count: int = 20, seed: int = 5) -> tuple[Array, Array, Array]:
    """(q, qd, qdd), each (count, nq), of a robot of the suite: 1 rad, or 5 cm, around rest."""
    rng = np.random.default_rng(seed)
    scale = np.ones(robot.nq)
    if robot.name == 'floating_actuator':
        scale[6:] = (0.05, 0.05, 0.02)
    scale[[name.endswith(('_d1', '_d2')) for name in robot.coordinate_names]] = 0.05
    q, qd, qdd = (scale * rng.uniform(-1, 1, (count, robot.nq)) for _ in range(3))
    return q + robot.rest, qd, qdd
