"""The irregular robots of the reference models (reference/samples.py), written as robot files."""

from __future__ import annotations

from typing import Any

import numpy as np
from reference import samples
from scipy.spatial.transform import Rotation

import soft_dynamics as sd

RPY_TILTED = Rotation.from_matrix(samples.R_TILTED).as_euler('xyz').tolist()


def _listed(value: Any, count: int) -> list[float]:
    return np.broadcast_to(np.asarray(value, float), count).tolist()


def _jensen(placement: str) -> dict[str, Any]:
    p = samples.JENSEN
    segments: list[dict[str, Any]] = []
    chambers: list[dict[str, Any]] = []
    for k, s in enumerate(p.segments):
        material = {
            'stiffness': _listed(s.stiffness, 2),
            'cubic_stiffness': _listed(s.cubic_stiffness, 2),
            'damping': _listed(s.damping, 2),
        }
        arc = {'type': 'arc', 'name': f'arc{k}', 'length': s.length, 'mass': s.mass, 'radius': s.radius}
        segments.append({**arc, 'placement': placement, 'quadrature_points': 16, 'material': material})
        for j, (x, y) in enumerate(((0, 1), (0, -1), (-1, 0), (1, 0))):
            position = [x * s.chamber_distance, y * s.chamber_distance]
            chambers.append(
                {
                    'name': f'p{k}{j}',
                    'segment': f'arc{k}',
                    'work': 'volume',
                    'area': float(np.pi * s.chamber_radius**2),
                    'position': position,
                }
            )
        if s.link is not None:
            inertia = np.asarray(s.link.inertia, float)
            inertia = np.diag(inertia) if inertia.ndim == 1 else inertia
            six = [*np.diag(inertia).tolist(), inertia[0, 1], inertia[0, 2], inertia[1, 2]]
            link = {'type': 'link', 'name': f'link{k}', 'length': s.link.length, 'mass': s.link.mass}
            segments.append(
                {**link, 'com': [0.0, 0.0, s.link.com_distance], 'inertia': [float(v) for v in six]}
            )
    return {
        'gravity': list(p.gravity),
        'base': {'position': list(p.p_WB), 'rpy': RPY_TILTED},
        'tip_load': p.tip_load,
        'segments': segments,
        'actuation': {'pressure_max': 1e5, 'chambers': chambers},
    }


def _mehl(placement: str, work: str = 'tip_wrench') -> dict[str, Any]:
    p = samples.MEHL
    segments, chambers = [], []
    for k, s in enumerate(p.segments):
        segments.append(
            {
                'type': 'arc',
                'name': f'arc{k}',
                'length': s.length,
                'mass': s.mass,
                'radius': s.radius,
                'extensible': True,
                'placement': placement,
                'quadrature_points': 16,
                'coordinates': 'difference',
                'lever': s.d,
                'material': {
                    'stiffness': [s.k_theta, s.k_theta, s.k_dl],
                    'cubic_stiffness': [s.k_theta3, s.k_theta3, s.k_dl3],
                    'damping': [s.d_theta, s.d_theta, s.d_dl],
                },
            }
        )
        for j, position in enumerate(np.asarray(s.chambers).tolist()):
            name = {'name': f'p{k}{j}', 'segment': f'arc{k}', 'work': work}
            chambers.append({**name, 'area': s.chamber_area, 'position': position})
    return {
        'gravity': list(p.gravity),
        'base': {'type': 'prescribed'},
        'tip_load': p.tip_load,
        'segments': segments,
        'actuation': {'pressure_max': 1e5, 'chambers': chambers},
    }


def _schultz(angles: str) -> dict[str, Any]:
    p = samples.SCHULTZ
    radii, count = np.asarray(p.radius, float), len(p.mass)
    segments = [
        {
            'type': 'disc',
            'name': f'disc{k}',
            'thread_length': _listed(p.thread, count)[k],
            'radius': float(radii[k + 1]),
            'inner_radius': float(radii[k]),
            'mass': p.mass[k],
            'angles': angles,
            'damping': _listed(p.damping, 5),
            'springs': [
                {'angle': a, 'stiffness': c, 'rest_length': rest}
                for a, c, rest in zip(
                    p.spring_angles,
                    _listed(p.spring_stiffness, 3),
                    _listed(p.spring_rest, 3),
                    strict=True,
                )
            ],
        }
        for k in range(count)
    ]
    chamber = {'name': 'inflation', 'segment': f'disc{count - 1}', 'work': 'end_force', 'area': p.area}
    return {
        'gravity': list(p.gravity),
        'base': {'rpy': RPY_TILTED},
        'segments': segments,
        'actuation': {'pressure_max': 100.0, 'chambers': [chamber]},
    }


def _wang(lengths: str) -> dict[str, Any]:
    p = samples.WANG
    segments, chambers = [], []
    for k in range(len(p.length)):
        pair = slice(2 * k, 2 * k + 2)
        segments.append(
            {
                'type': 'universal',
                'name': f'segment{k}',
                'length': p.length[k],
                'mass': p.mass[k],
                'lengths': lengths,
                'joint_mass_fraction': p.mid_fraction,
                'link_stiffness': p.slide_stiffness,
                'link_damping': p.slide_damping,
                'material': {'stiffness': list(p.stiffness[pair]), 'damping': list(p.damping[pair])},
            }
        )
        a1, a2 = np.array(p.torque_per_bar[pair]) / 2e5
        for j, (s1, s2) in enumerate(((1, 1), (-1, 1), (1, -1), (-1, -1))):
            gain = [float(s1 * a1), float(s2 * a2)]
            chambers.append({'name': f'p{k}{j}', 'segment': f'segment{k}', 'gain': gain})
    return {
        'gravity': list(p.gravity),
        'base': {'rpy': RPY_TILTED},
        'tip_load': p.tip_load,
        'segments': segments,
        'actuation': {'pressure_max': 2.5e5, 'chambers': chambers},
    }


def _godage() -> dict[str, Any]:
    p = samples.GODAGE
    segments = [
        {
            'type': 'hinge',
            'name': f'link{k}',
            'length': _listed(p.length, p.n)[k],
            'mass': _listed(p.mass, p.n)[k],
            'offset': _listed(p.rest_offset, p.n)[k],
            'material': {'stiffness': _listed(p.stiffness, 1), 'damping': _listed(p.damping, 1)},
        }
        for k in range(p.n)
    ]
    chamber = {'name': 'chamber', 'segment': 'all', 'gain': [2.0 / 3.0 * p.radius**3]}
    return {
        'gravity': list(p.gravity),
        'tip_load': p.tip_load,
        'segments': segments,
        'actuation': {'pressure_max': 2.4e5, 'chambers': [chamber]},
    }


def description(name: str) -> dict[str, Any]:
    """The robot file of a reference sample, as a mapping."""
    model, _, variant = name.partition(' ')
    if model == 'jensen':
        body = _jensen(variant)
    elif model == 'mehl':
        body = _mehl(variant)
    elif model == 'schultz':
        body = _schultz(variant)
    elif model == 'wang':
        body = _wang({'reduced': 'fixed', 'full': 'free'}[variant])
    else:
        body = _godage()
    return {'format': 1, 'name': name.replace(' ', '_'), **body}


def twin(name: str) -> sd.Robot:
    """Return our robot that must behave like the reference sample of that name."""
    return sd.Robot.from_dict(description(name))
