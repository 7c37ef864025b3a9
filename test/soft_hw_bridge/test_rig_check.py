"""The plausibility checks of the rig, and the faults they must find."""

from __future__ import annotations

import numpy as np
import pytest

from soft_hw_bridge.commands import check_rig


def test_modes_are_those_of_the_poles() -> None:
    swing = check_rig.slowest(np.array([-0.5 + 6.0j, -0.5 - 6.0j, -100.0 + 0.0j]))
    assert swing.frequency == pytest.approx(6.0 / (2 * np.pi))
    assert swing.damping_ratio == pytest.approx(0.5 / np.hypot(0.5, 6.0))
    creep = check_rig.slowest(np.array([-0.1 + 0.0j, -5.0 + 1.0j]))
    assert (creep.frequency, creep.time_constant) == (0.0, pytest.approx(10.0))
    assert str(creep) == 'creeps, 10 s'


def test_fit_finds_a_decaying_sine() -> None:
    t = np.linspace(0.0, 6.0, 301)
    found = check_rig.fit(t, check_rig.decay(t, 0.3, 0.7, 1.1, -1.4))
    assert found == pytest.approx((1.1, 0.7, 1.0), abs=1e-4)


@pytest.mark.parametrize('load', check_rig.REPORTED)
def test_plant_swings_like_the_model_and_closer_to_it_than_the_arm_of_the_paper(load: float) -> None:
    swing = check_rig.swing(load)
    assert swing.raised > 0.05
    assert 1e-4 < swing.difference < check_rig.REPORTED[load]
    plant, model = swing.fits['segment1']
    assert plant.frequency == pytest.approx(model.frequency, rel=0.03)
    assert plant.decay == pytest.approx(model.decay, rel=0.1)
    assert plant.explained > 0.99


@pytest.mark.parametrize('name', ['honeycomb_arm', 'pneumatic_arm'])
def test_plant_sags_like_the_model_and_gains_no_energy(name: str) -> None:
    fall = check_rig.fall(name)
    assert fall.sag == pytest.approx(fall.model_sag, rel=0.05)
    assert fall.energy_rise < 1e-6
    assert fall.settled < 10.0
    assert fall.mode is not None
    assert fall.model_mode is not None
    assert fall.mode.frequency == pytest.approx(fall.model_mode.frequency, rel=0.05)
