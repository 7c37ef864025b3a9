"""Models of real robots against their recordings."""

from __future__ import annotations

import numpy as np
import pytest
from real_recordings import RECORDINGS, needs_recordings

from examples.real_data import asl_trunk, asu_arm, silicone_beam
from examples.real_data.bar import bar_error
from soft_dynamics.description.robot_description import load_description
from soft_dynamics.robot import load

pytestmark = [pytest.mark.real_data, needs_recordings]
ARM, TRUNK = RECORDINGS / 'asu_two_segment_arm', RECORDINGS / 'asl_trunk'


def test_one_modulus_gives_frequency_and_sag_of_the_unloaded_and_the_loaded_beam() -> None:
    data = RECORDINGS / 'ethz_silicone' / 'beam'
    real = {name: silicone_beam.measured(data / file) for name, (file, _) in silicone_beam.CASES.items()}
    beam = silicone_beam.fit(load_description(silicone_beam.ROBOT), real['unloaded'])
    for name, (_, mass) in silicone_beam.CASES.items():
        model = silicone_beam.modelled(beam, mass)
        assert model.frequency == pytest.approx(real[name].frequency, rel=0.05), name
        assert model.sag == pytest.approx(real[name].sag, rel=0.05), name


def test_a_stiffer_beam_sags_less_and_swings_faster() -> None:
    beam = load_description(silicone_beam.ROBOT)
    soft, stiff = (
        silicone_beam.modelled(silicone_beam.apply(beam, silicone_beam.select(beam, ['*.stiffness']), x), 0.0)
        for x in (np.zeros(1), np.full(1, np.log(1.21)))
    )
    assert stiff.frequency / soft.frequency == pytest.approx(1.1, rel=0.02)
    assert soft.sag / stiff.sag == pytest.approx(1.21, rel=0.03)


def test_the_identified_arm_runs_freely_with_less_error_than_gains_and_a_lag() -> None:
    robot, recording = load(asu_arm.ROBOT.with_name('asu_arm_identified.yaml')), asu_arm.recorded(ARM)
    bar = np.degrees(bar_error(recording, recording, asu_arm.BENDS))
    assert np.all(asu_arm.model_error(robot.description, recording) < bar)


def test_an_arm_fitted_to_the_second_half_of_a_recording_runs_freely_through_the_first() -> None:
    whole = asu_arm.recorded(ARM)
    half = whole.duration / 2
    found = asu_arm.fit(load(asu_arm.ROBOT).description, whole.part(half, whole.duration))
    repeat = [1.7, 1.4]  # [deg] of gains and a lag on a repeated run
    assert np.all(asu_arm.model_error(found.description, whole.part(0.0, half)) < repeat)


def test_disks_of_the_trunk_tell_its_bends() -> None:
    trunk = load(asl_trunk.ROBOT)
    q = 0.4 * np.random.default_rng(1).standard_normal((20, trunk.nq))
    X = trunk.forward_kinematics(q)
    ends = [k for k, name in enumerate(trunk.frame_names) if name.startswith('segment')]
    assert asl_trunk.bends(X[:, ends][..., :3, 3]) == pytest.approx(q, abs=1e-9)


def test_the_trunk_follows_its_motors() -> None:
    """Disks and motors share time stamps; the fit itself takes a minute, so only the command runs it."""
    seen = asl_trunk.recorded(TRUNK).part(0.0, 20.0)
    assert np.all(bar_error(seen, seen, range(6)) < 0.5 * seen.q.std(0))
    assert np.all(np.isfinite(asl_trunk.free_run_error(load_description(asl_trunk.ROBOT), seen)))
