"""Particle swarm optimisation: particles move towards their own best place and the best of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from soft_dynamics.array import Array

INERTIA, OWN, COMMON = 0.7298, 1.4962, 1.4962  # Clerc and Kennedy's constriction
STALLED = 15  # steps without improvement after which the swarm has converged
BETTER = 1e-9  # relative gain that counts as improvement


def minimise(
    cost: Callable[[Array], float],
    bounds: tuple[Array, Array],
    particles: int,
    steps: int,
    seed: int,
    state: dict[str, Any] | None = None,
    after: Callable[[dict[str, Any]], None] = lambda _: None,
) -> tuple[Array, float]:
    """Return the best place within bounds (low, high), and its cost.

    state: resume from this; `after` gets it at every step.
    """
    low, high = bounds
    state = dict(state) if state else _begin(cost, low, high, particles, seed)
    rng = np.random.default_rng([seed, state['step']])
    while state['step'] < steps and state['stalled'] < STALLED:
        place, speed, best, costs = (np.array(state[key]) for key in ('place', 'speed', 'best', 'costs'))
        leader = best[np.argmin(costs)]
        pull = rng.random((2, *place.shape))
        speed = INERTIA * speed + OWN * pull[0] * (best - place) + COMMON * pull[1] * (leader - place)
        place = np.clip(place + speed, low, high)
        now = np.array([cost(x) for x in place])
        better = now < costs
        gained = now.min() < costs.min() * (1.0 - BETTER)
        best[better], costs[better] = place[better], now[better]
        state = {
            'step': state['step'] + 1,
            'stalled': 0 if gained else state['stalled'] + 1,
            **{
                key: array.tolist()
                for key, array in zip(
                    ('place', 'speed', 'best', 'costs'), (place, speed, best, costs), strict=True
                )
            },
        }
        after(state)
    winner = int(np.argmin(state['costs']))
    return np.array(state['best'][winner]), float(state['costs'][winner])


def _begin(
    cost: Callable[[Array], float], low: Array, high: Array, particles: int, seed: int
) -> dict[str, Any]:
    place = np.random.default_rng(seed).uniform(low, high, (particles, low.size))
    place[0] = np.clip(0.0, low, high)
    costs = [cost(x) for x in place]
    speed = np.zeros_like(place).tolist()
    return {
        'step': 0,
        'stalled': 0,
        'place': place.tolist(),
        'speed': speed,
        'best': place.tolist(),
        'costs': costs,
    }
