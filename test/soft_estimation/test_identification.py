"""Identification recovers the true parameters with their uncertainty; slopes are exact; errors name the mistake."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from identification_truth import bending_recording, deviations, recorded, wrong

from soft_dynamics.description.robot_description import load_description
from soft_dynamics.errors import NotConverged
from soft_dynamics.robot import Robot
from soft_dynamics.simulation.first_order_lag import follow
from soft_estimation.differentiate.smoothing_spline import smoothing_spline
from soft_estimation.identification import METHODS, Options, identify, problem_of
from soft_estimation.identification.budget import Checkpoint
from soft_estimation.identification.damped_sinusoids import fit_swing
from soft_estimation.identification.methods import mehl as mehl_way
from soft_estimation.identification.particle_swarm import minimise
from soft_estimation.identification.problem import follow_evenly
from soft_estimation.identification.sensitivity import slopes
from soft_estimation.identification.unknowns import apply, select

SHARED = ('*.stiffness', '*.damping')
BUDGET = {'least_squares': Options(starts=1), 'jensen': Options(trials=80), 'godage': Options(trials=250)}


@pytest.fixture(scope='module')
def bending():
    truth = load_description('bending_actuator')
    return truth, wrong(truth, stiffness=1.8, damping=0.5), bending_recording(truth)


@pytest.mark.parametrize('method', BUDGET)
def test_stiffness_and_damping_are_found_again(bending, method) -> None:
    truth, guess, recording = bending
    found = identify(problem_of(guess, [recording], method, SHARED), method, BUDGET[method])
    off = deviations(found, truth)
    assert abs(off['*.stiffness']) < 0.02
    assert abs(off['*.damping']) < 0.02
    assert np.all(found.error < 0.1 * found.before)


def test_the_truth_lies_within_the_uncertainty(bending) -> None:
    truth, guess, recording = bending
    found = identify(problem_of(guess, [recording], 'least_squares', SHARED), options=Options(starts=1))
    off = np.array(list(deviations(found, truth).values())) * found.values
    assert np.all(np.abs(off) < 4.0 * found.uncertainty.std)
    assert np.all(found.uncertainty.std < 0.05 * found.values)
    assert found.uncertainty.warnings == ()


def test_what_does_not_show_is_warned_of(bending) -> None:
    _truth, guess, recording = bending
    keys = ('*.stiffness', '*.damping', '*.mass', '*.gain')  # without gravity, only ratios
    found = identify(problem_of(guess, [recording], 'least_squares', keys), options=Options(starts=1))
    assert any('cannot separate' in line and '*.mass' in line for line in found.uncertainty.warnings)


SLOPES = [
    ('bending_actuator', ('*.stiffness', '*.damping', '*.mass', '*.gain', 'valve_lag')),
    ('honeycomb_arm', ('segment1.stiffness', '*.damping', 'segment2.rest', 'segment1_*.gain[0]')),
]


@pytest.mark.parametrize(('name', 'keys'), SLOPES)
def test_slopes_match_differences_of_runs(name, keys) -> None:
    truth = load_description(name)
    t = np.arange(0.0, 0.4, 0.02)
    chambers = len(truth.actuation.chambers)
    pressure = 5e4 * np.sin(3.0 * t[:, None] + np.arange(chambers)) ** 2 * np.minimum(t / 0.2, 1.0)[:, None]
    problem = problem_of(
        truth, [recorded(Robot(truth), t, pressure, noise=0.0)], 'least_squares', keys, step=1e-3
    )
    x, (window,) = np.full(len(keys), 0.05), problem.windows

    def run(x):
        return problem.run(problem.robot(x), window, problem.pressures(x)[0])

    found = slopes(problem, x, problem.robot(x), window, run(x)).parameters
    for k, step in enumerate(1e-4 * np.eye(x.size)):
        above, below = run(x + step), run(x - step)
        difference = (above.q - below.q)[:: above.every] / 2e-4
        assert np.abs(found[..., k] - difference).max() < 2e-3 * np.abs(difference).max()


@pytest.mark.parametrize('tip_load', [0.0, 0.05])
def test_mehls_values_are_found_again(tip_load: float) -> None:
    """A load given in the file is not attributed to the mass of the actuator."""
    truth = replace(load_description('floating_actuator'), tip_load=tip_load)
    dt, rng, runs = 0.002, np.random.default_rng(1), []
    t = np.arange(0.0, 3.0, dt)
    for seed in range(4):
        line = follow_evenly(75e3 * (rng.random((6, 3)) > 0.5)[(t // 0.5).astype(int)], dt, 0.01)
        pressure = follow_evenly(line, dt, truth.actuation.valve_lag)
        settings = {'noise': 1e-5, 'bandwidth': 40.0, 'force_noise': 0.02, 'seed': seed}
        runs.append(recorded(Robot(truth), t, pressure, shown=line, **settings))
    guess = wrong(truth, stiffness=1.5, damping=0.6, mass=1.3, area=0.8)
    places = select(guess, ('*.position[0]', '*.position[1]', 'valve_lag'))
    guess = apply(guess, places, np.array([0.5, -0.5, np.log(2.0)]))
    problem = problem_of(guess, runs, 'mehl')
    x = mehl_way.search(problem, Options(trials=300), lambda part, note: None, Checkpoint(None, ''))
    true = select(truth, [p.key for p in problem.parameters])
    for parameter, now, right in zip(problem.parameters, x, true, strict=True):
        assert parameter.value(now) == pytest.approx(right.shown, rel=0.02), parameter.key
    ((place, std),) = mehl_way.mass_std(problem).items()
    assert problem.parameters[place].key == 'actuator.mass'
    assert abs(problem.parameters[place].value(x[place]) - true[place].shown) < 4.0 * std
    assert std < 0.01 * true[place].shown


def test_wangs_values_are_found_again() -> None:
    truth, rng = load_description('honeycomb_arm'), np.random.default_rng(1)
    robot, t, slow = Robot(truth), np.arange(0.0, 4.0, 0.01), np.arange(0.0, 8.0, 0.04)
    none, m = np.zeros((t.size, 16)), np.arange(16)
    starts = 0.3 * rng.standard_normal((3, 8))
    runs = [recorded(robot, t, none, q0=q0, bandwidth=20.0, seed=k) for k, q0 in enumerate(starts)]
    pressure = (
        60e3 * np.sin(slow[:, None] * (0.2 + 0.1 * (m % 5)) + m) ** 2 * np.minimum(slow / 3, 1)[:, None]
    )
    runs.append(recorded(robot, slow, pressure, bandwidth=3.0))
    problem = problem_of(wrong(truth, stiffness=1.5, damping=0.6), runs, 'wang')
    x = METHODS['wang'].search(problem, Options(), lambda part, note: None, Checkpoint(None, ''))
    true = select(truth, [p.key for p in problem.parameters])
    for parameter, now, right in zip(problem.parameters, x, true, strict=True):
        assert parameter.value(now) == pytest.approx(right.shown, rel=0.02), parameter.key


def test_a_low_bandwidth_does_not_pass_for_damping(bending) -> None:
    """The simulated run passes through the same filter as the recording."""
    truth, guess, recording = bending
    smooth = smoothing_spline(recording.t, recording.q, 6.0)
    filtered = replace(recording, q=smooth(recording.t))
    found = {}
    for bandwidth in (None, 6.0):
        told = replace(filtered, bandwidth=bandwidth)
        problem = problem_of(guess, [told], 'least_squares', SHARED)
        found[bandwidth] = abs(deviations(identify(problem, options=Options(starts=1)), truth)['*.damping'])
    assert found[6.0] < 0.02
    assert found[None] > 0.05


def test_a_sum_of_damped_sinusoids_is_found_exactly() -> None:
    t = np.arange(0.0, 3.0, 0.01)
    y = np.stack([np.exp(-t) * np.sin(9 * t), 0.2 + np.exp(-2 * t) * np.cos(20 * t)], 1)
    swing = fit_swing(t, y, 4)
    assert swing.error < 1e-6
    slope = np.exp(-t) * (9 * np.cos(9 * t) - np.sin(9 * t))
    assert np.abs(swing.qd[:, 0] - slope).max() < 1e-3


def test_a_swarm_finds_the_minimum_and_goes_on_where_it_was() -> None:
    states = []
    bounds = np.full(2, -2.0), np.full(2, 2.0)

    def cost(x):
        return float(np.sum((x - [0.5, -1.0]) ** 2))

    minimise(cost, bounds, 12, 10, seed=3, after=states.append)
    x, least = minimise(cost, bounds, 12, 80, seed=3, state=states[-1])
    assert least <= min(states[-1]['costs'])
    assert x == pytest.approx([0.5, -1.0], abs=1e-2)


def test_a_killed_search_does_not_repeat_what_is_done(bending, tmp_path) -> None:
    _truth, guess, recording = bending
    problem = problem_of(guess, [recording], 'least_squares', SHARED)
    store = Checkpoint(tmp_path / 'search.json', problem.fingerprint)
    store.save({'starts': [{'x': [0.1, 0.2], 'error': 1e-9}, {'x': [0.1, 0.2], 'error': 1e-9}]})
    calls = []
    x = METHODS['least_squares'].search(problem, Options(), lambda part, note: calls.append(note), store)
    assert x.tolist() == [0.1, 0.2]
    assert len(calls) == 1
    assert Checkpoint(tmp_path / 'search.json', 'another problem').load() == {}


def test_chambers_fill_and_vent_each_with_their_lag() -> None:
    t = np.linspace(0.0, 3.0, 301)
    up = follow(t, np.full((301, 1), 1.0), 0.5, 2.0, 0.0)[:, 0]
    down = follow(t, np.zeros((301, 1)), 0.5, 2.0, 1.0)[:, 0]
    assert up == pytest.approx(1.0 - np.exp(-t / 0.5), abs=1e-12)
    assert down == pytest.approx(np.exp(-t / 2.0), abs=1e-12)


MISTAKES = [
    (('elbow.stiffness',), 'matches no number'),
    (('*.stiffness', 'link1.stiffness'), 'same number'),
    (('stiff ness',), 'expected name.field'),
    (('*.stiffness=2',), 'low:high'),
    (('vent_lag',), 'is 0 in the file'),
]


@pytest.mark.parametrize(('keys', 'text'), MISTAKES)
def test_a_bad_key_is_refused_by_name(keys, text) -> None:
    with pytest.raises(ValueError, match=text):
        select(load_description('bending_actuator'), keys)


def test_methods_refuse_what_they_cannot_use(bending) -> None:
    _truth, guess, recording = bending
    with pytest.raises(ValueError, match='extensible arc'):
        problem_of(guess, [recording], 'mehl')
    with pytest.raises(ValueError, match='free swing'):
        identify(problem_of(guess, [recording], 'wang'), 'wang')
    short = replace(recording, pressure=np.zeros_like(recording.pressure)).part(0.0, 0.6)
    with pytest.raises(ValueError, match='swing of at least 1 s, got one'):
        identify(problem_of(guess, [short], 'wang', SHARED), 'wang')
    with pytest.raises(ValueError, match='method must be one of'):
        problem_of(guess, [recording], 'guess')


def test_of_a_robot_that_cannot_run_the_uncertainty_is_not_known(bending, monkeypatch) -> None:
    """For every method: the report warns, and the numbers are still written."""
    truth, _, recording = bending
    stop = NotConverged(0.1, None, 'no next state')
    monkeypatch.setitem(METHODS, 'least_squares', METHODS['least_squares']._replace(search=found_at_once))
    monkeypatch.setattr(Robot, 'linearize', Mock(side_effect=stop))
    found = identify(problem_of(truth, [recording], 'least_squares', SHARED))
    assert np.all(np.isnan(found.uncertainty.std))
    assert found.uncertainty.warnings == (f'no uncertainty: {stop}',)


def found_at_once(problem, *_):
    return problem.start
