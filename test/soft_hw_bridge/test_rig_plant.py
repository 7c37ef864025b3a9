"""The MuJoCo plant against closed forms, invariants and the robots' own models."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import soft_dynamics as sd
from soft_dynamics.description.robot_description import Description, from_mapping, load_description
from soft_dynamics.errors import NotConverged
from soft_hw_bridge.rig.plant import Plant
from soft_hw_bridge.rig.plant_centerline import Centerline

WEIGHT = 9.81
ARC = {'type': 'arc', 'name': 'a', 'length': 0.2, 'mass': 0.5, 'radius': 0.05}
UNIVERSAL = {'type': 'universal', 'name': 'a', 'length': 0.2, 'mass': 0.5}
HINGE = {'type': 'hinge', 'name': 'a', 'length': 0.2, 'mass': 0.5}
STRETCHING = ARC | {'extensible': True, 'coordinates': 'difference', 'lever': 0.05}


def robot(segment: dict[str, Any], chambers: list[dict[str, Any]] | None = None, **keys: Any) -> Description:
    """A robot of one segment."""
    actuation = {'pressure_max': 1e5, 'chambers': chambers} if chambers else {}
    data = {'format': 1, 'name': 'test', 'segments': [segment], 'actuation': actuation}
    return from_mapping(data | keys, 'test')


def settled(description: Description, pressure: float = 1.0) -> Plant:
    plant = Plant(description)
    plant.advance(5.0, [pressure] * plant.pressure.size)
    assert np.abs(plant.data.qvel).max() < 1e-6
    return plant


def tip(plant: Plant) -> Any:
    """X_BT"""
    X = plant.poses()
    return np.linalg.inv(X[0]) @ X[-1]


@pytest.mark.parametrize(
    ('segment', 'gain', 'axis', 'angle'),
    [
        (UNIVERSAL, [2.0, 0.0], 'y', 2.0 / 5.0),
        (UNIVERSAL, [0.0, 2.0], 'x', 2.0 / 8.0),
        (UNIVERSAL | {'axis_order': 'xy'}, [2.0, 0.0], 'x', 2.0 / 5.0),
        (ARC, [2.0, 0.0], 'x', 2.0 / 5.0),
        (ARC, [0.0, 2.0], 'y', 2.0 / 8.0),
        (ARC | {'coordinates': 'difference', 'lever': 0.5}, [2.0, 0.0], 'y', 2.0 / 5.0 / 0.5),
        (ARC | {'coordinates': 'difference', 'lever': 0.5}, [0.0, 2.0], 'x', -2.0 / 8.0 / 0.5),
        (HINGE, [2.0], 'z', 2.0 / 5.0),
    ],
)
def test_static_bend_under_a_couple_is_that_of_the_file(
    segment: dict[str, Any], gain: list[float], axis: str, angle: float
) -> None:
    material = {'stiffness': [5.0, 8.0][: len(gain)], 'damping': [0.5, 0.8][: len(gain)]}
    plant = settled(robot(segment | {'material': material}, [{'name': 'c', 'segment': 'a', 'gain': gain}]))
    wanted = Rotation.from_euler(axis, angle).as_matrix()
    assert tip(plant)[:3, :3] == pytest.approx(wanted, abs=1e-6)


def test_stretch_and_bend_of_a_chamber_are_those_of_its_volume() -> None:
    material = {
        'stiffness': [200.0, 200.0, 300.0],
        'cubic_stiffness': [0.0, 0.0, -4e4],
        'damping': [9.0, 9.0, 20.0],
    }
    chamber = {'name': 'c', 'segment': 'a', 'work': 'volume', 'area': 1e-4, 'position': [0.0, 0.0]}
    plant = settled(robot(STRETCHING | {'material': material}, [chamber]), 3e4)
    stretch = tip(plant)[2, 3] - 0.2
    assert 300.0 * stretch - 4e4 * stretch**3 == pytest.approx(3.0, rel=1e-4)
    plant = settled(robot(STRETCHING | {'material': material}, [chamber | {'position': [0.01, 0.0]}]), 3e4)
    bend = -3.0 * 0.01 / (200.0 * 0.05**2)  # p A x over the stiffness about y
    assert tip(plant)[:3, :3] == pytest.approx(Rotation.from_euler('y', bend).as_matrix(), abs=1e-6)


def test_springs_rest_where_the_file_says() -> None:
    material = {'stiffness': [5.0], 'damping': [0.5], 'rest': [0.3]}
    plant = settled(robot(HINGE | {'material': material, 'offset': 0.2}))
    assert tip(plant)[:3, :3] == pytest.approx(Rotation.from_euler('z', 0.5).as_matrix(), abs=1e-6)


def test_length_of_an_arc_is_a_coordinate_with_its_own_rest() -> None:
    material = {'stiffness': [5.0, 5.0, 300.0], 'damping': [0.5, 0.5, 20.0]}
    segment = ARC | {'extensible': True, 'material': material}
    assert tip(settled(robot(segment)))[2, 3] == pytest.approx(0.2)
    shorter = robot(segment | {'material': material | {'rest': [0.0, 0.0, 0.17]}})
    assert tip(settled(shorter))[2, 3] == pytest.approx(0.17)
    plant = Plant(shorter)
    plant.place([0.0, 0.0, 0.23])
    assert tip(plant)[2, 3] == pytest.approx(0.23)


@pytest.mark.parametrize('name', sd.robot_names())
def test_straight_robot_has_the_frames_of_its_model(name: str) -> None:
    model, plant = sd.load(name), Plant(load_description(name))
    assert plant.frame_names == model.frame_names
    q = np.zeros(model.nq)
    X_WB = plant.poses()[0]
    assert plant.poses() == pytest.approx(X_WB @ model.forward_kinematics(q), abs=1e-9)


@pytest.mark.parametrize('name', sd.robot_names())
def test_weight_points_down_and_the_base_carries_all_of_it(name: str) -> None:
    description = load_description(name)
    plant = Plant(description, tip_load=0.5)
    plant.step(plant.pressure.copy())
    if not any(description.gravity):
        return
    assert plant.model.opt.gravity == pytest.approx([0.0, 0.0, -WEIGHT])
    mass = plant.model.body_subtreemass[plant.model.body('base').id]
    parts = sum(segment.mass for segment in description.segments)
    assert mass == pytest.approx(parts + 0.5, rel=2e-3)  # threads of discs weigh a little
    for _ in range(20_000):
        plant.step(plant.pressure)
    force_W = plant.poses()[0, :3, :3] @ plant.base_wrench()[3:]
    assert force_W == pytest.approx([0.0, 0.0, mass * WEIGHT], abs=0.02 * mass * WEIGHT)


def test_a_load_that_is_hung_on_later_is_the_load_of_the_file() -> None:
    description = load_description('honeycomb_arm')
    pressure = np.linspace(0.0, 1e5, len(description.actuation.chambers))
    later, from_start = Plant(description), Plant(description, tip_load=0.5)
    later.advance(0.1, pressure)
    for name in ('qpos', 'qvel', 'time'):
        setattr(from_start.data, name, getattr(later.data, name))
    from_start.pressure[:] = later.pressure
    mujoco.mj_step1(from_start.model, from_start.data)
    later.load(0.5)
    for plant in (later, from_start):
        plant.advance(0.5, pressure)
    assert later.poses() == pytest.approx(from_start.poses(), abs=1e-9)
    assert later.base_wrench() == pytest.approx(from_start.base_wrench(), abs=1e-6)


def test_base_wrench_is_the_one_of_the_model() -> None:
    description = from_mapping(
        {
            'format': 1,
            'name': 'test',
            'gravity': [0.0, WEIGHT, 0.0],
            'segments': [
                UNIVERSAL | {'material': {'stiffness': [500.0, 500.0], 'damping': [50.0, 50.0]}},
                {'type': 'link', 'name': 'b', 'length': 0.1, 'mass': 0.3, 'com': [0.02, 0.0, 0.05]},
            ],
        },
        'test',
    )
    plant, model = settled(description), sd.Robot(description)
    zero = np.zeros(2)
    q = model.simulate(zero, zero, None, [0.0, 5.0]).q[-1]
    assert plant.base_wrench() == pytest.approx(model.base_wrench(q, zero, zero), abs=2e-3)


def test_energy_only_goes_down_in_a_ring_down_and_stays_without_dampers() -> None:
    description = load_description('honeycomb_arm')
    plant = Plant(description)
    plant.place([0.0, 0.4] * 4)
    energies = []
    for _ in range(100):
        plant.advance(0.1)
        energies.append(plant.energy())
    assert np.all(np.diff(energies) < 1e-6)
    assert energies[-1] == pytest.approx(Plant(description).energy(), abs=1e-3)
    plant = Plant(description, step=5e-5)
    plant.model.dof_damping[:] = 0.0
    plant.place([0.0, 0.4] * 4)
    before = plant.energy()
    swing = before - Plant(description).energy()
    plant.advance(1.0)
    assert plant.energy() == pytest.approx(before, abs=0.01 * swing)


def test_pressure_follows_its_command_with_the_lag_of_the_valve() -> None:
    plant = Plant(load_description('honeycomb_arm'))
    plant.advance(0.05, np.full(16, 1e5))  # one time constant
    assert plant.pressure == pytest.approx(np.full(16, 1e5 * (1 - np.exp(-1.0))))


def test_free_base_falls_like_a_stone() -> None:
    base = {'type': 'free', 'mass': 1.0, 'inertia': [0.1, 0.1, 0.1]}
    plant = Plant(robot(ARC, base=base, gravity=[0.0, 0.0, -WEIGHT]))
    plant.advance(0.5)
    assert plant.poses()[:, 2, 3] == pytest.approx(np.array([0.0, 0.2]) - 0.5 * WEIGHT * 0.5**2, rel=5e-3)


def test_velocities_are_the_rates_of_the_poses() -> None:
    plant = Plant(load_description('pneumatic_arm'), step=2e-5)
    plant.place(np.zeros(6), np.linspace(-1.0, 1.0, 6))
    plant.advance(0.01)
    before, V = plant.poses(), plant.velocities()
    plant.advance(2e-5)
    after = plant.poses()
    turn = Rotation.from_matrix(after[:, :3, :3]) * Rotation.from_matrix(before[:, :3, :3]).inv()
    rates = np.concatenate([turn.as_rotvec(), after[:, :3, 3] - before[:, :3, 3]], 1) / 2e-5
    assert pytest.approx(rates, abs=0.02) == V


def test_obstacle_stops_the_arm_and_pushes_on_it() -> None:
    description = load_description('honeycomb_arm')
    command = [
        1e5 if chamber.name.endswith(('p1', 'p2')) else 0.0 for chamber in description.actuation.chambers
    ]
    free = Plant(description)
    free.advance(15.0, command)
    x, y, z = free.poses()[-1, :3, 3]
    held = Plant(description, obstacle=(x, y, z, 0.05))
    held.advance(4.0, command)
    distance = np.linalg.norm(held.poses()[:, :3, 3] - [x, y, z], axis=1)
    assert distance.min() > 0.05
    assert np.abs(held.base_wrench()[3:5]).max() > 0.5  # [N] sideways, where gravity has no component
    assert np.abs(free.base_wrench()[3:5]).max() < 0.01


@pytest.mark.parametrize('name', sd.robot_names())
def test_robot_survives_all_it_can_be_told(name: str) -> None:
    plant = Plant(load_description(name))
    random = np.random.default_rng(1)
    limit = plant.description.actuation.pressure_max
    for _ in range(10):
        plant.advance(0.2, limit * random.integers(0, 2, plant.pressure.size))
    assert np.isfinite(plant.poses()).all()


def test_too_long_a_step_is_told() -> None:
    plant = Plant(load_description('honeycomb_arm'), step=0.2)
    plant.place([0.5, 0.5] * 4)
    with pytest.raises(NotConverged, match=r'a step of 0\.2 s is too long'):
        plant.advance(100.0)


def test_centerline_of_a_bent_arc_is_a_circle() -> None:
    chambers = [{'name': 'c', 'segment': 'a', 'gain': [0.0, 6.0]}]
    segment = ARC | {'material': {'stiffness': [5.0, 5.0], 'damping': [0.5, 0.5]}}
    plant = settled(
        robot(segment, chambers, mount={'position': [1.0, 2.0, 3.0], 'rpy': [0.0, 0.0, np.pi / 2]})
    )
    s = np.linspace(0.0, 0.2, 50)
    line = Centerline(plant, s)
    bend = 6.0 / 5.0
    circle = 0.2 / bend * np.stack([0 * s, 1 - np.cos(bend * s / 0.2), np.sin(bend * s / 0.2)], 1)
    assert line.points() - [1.0, 2.0, 3.0] == pytest.approx(circle, abs=0.02 * 0.2)
    assert line.curvature() == pytest.approx(np.tile([0.0, bend / 0.2, 0.0], (50, 1)), rel=0.02, abs=1e-6)
    assert line.points()[-1] == pytest.approx(plant.poses()[-1, :3, 3])


def test_centerline_of_hinges_runs_through_the_tip_and_refuses_what_is_beyond() -> None:
    plant = settled(load_description('bending_actuator'), 1e5)
    line = Centerline(plant, np.array([0.0, 0.17]))
    assert line.points() == pytest.approx(plant.poses()[[0, -1], :3, 3], abs=1e-6)
    with pytest.raises(ValueError, match=r'from 0 to 0\.17 m'):
        Centerline(plant, np.array([0.0, 0.2]))


def test_misuse_is_refused() -> None:
    plant = Plant(load_description('honeycomb_arm'))
    with pytest.raises(ValueError, match=r'command: expected shape \(16,\), got \(3,\)'):
        plant.advance(0.1, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r'q: expected shape \(8,\), got \(2,\)'):
        plant.place([1.0, 2.0])
    disc = {'type': 'disc', 'name': 'a', 'thread_length': 1.0, 'radius': 1.0, 'mass': 1.0}
    with pytest.raises(
        ValueError, match="chamber 'c': the virtual rig has no joints for the angles of a disc"
    ):
        Plant(robot(disc, [{'name': 'c', 'segment': 'a', 'gain': [1.0] * 5}]))
