"""Recordings: a bag of a known motion is read as that motion, and any mistake in it gives one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import soft_dynamics as sd
from soft_dynamics.bags import BagError, BagWriter, SampleWriter
from soft_dynamics.robot import load
from soft_estimation.recordings.recording import Recording, read_recording, resample
from tools.made_bag import START_NS, Rig, driven, write_bag

SECONDS = 3.0
RATES = dict.fromkeys(('state', 'pressure', 'poses', 'frames', 'wrench', 'fiber'), 100.0)


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp('bags')


@pytest.fixture(scope='module')
def arm() -> sd.Robot:
    return load('honeycomb_arm')


@pytest.fixture(scope='module')
def run(folder: Path, arm: sd.Robot) -> Path:
    return write_bag(folder / 'run', Rig(arm, driven(arm, SECONDS)), ['state', 'pressure', 'wrench'], RATES)


def test_the_state_is_read_as_it_was_written(run: Path, arm: sd.Robot) -> None:
    motion = driven(arm, SECONDS)
    found = read_recording(run, arm)
    np.testing.assert_allclose(found.t, motion.t, atol=1e-9)
    np.testing.assert_allclose(found.q, motion.q, atol=1e-12)
    np.testing.assert_allclose(found.qd, motion.qd, atol=1e-10)
    np.testing.assert_allclose(found.pressure, motion.inputs, rtol=1e-9)
    assert found.wrench_B is not None
    qdd = np.gradient(motion.qd, motion.t, axis=0)
    np.testing.assert_allclose(found.wrench_B, arm.base_wrench(motion.q, motion.qd, qdd), atol=1e-9)
    assert (found.robot, found.source, bool(np.all(found.seen))) == (arm.name, 'state (/state)', True)
    assert (found.duration, found.dt) == (pytest.approx(SECONDS), pytest.approx(0.01))


@pytest.mark.parametrize('rate', [37.0, 250.0])
def test_any_grid_shows_the_same_motion(run: Path, arm: sd.Robot, rate: float) -> None:
    motion = driven(arm, SECONDS)
    found = read_recording(run, arm, rate)
    assert found.dt == pytest.approx(1.0 / rate)
    for k in range(arm.nq):
        np.testing.assert_allclose(found.q[:, k], np.interp(found.t, motion.t, motion.q[:, k]), atol=2e-3)


@pytest.mark.parametrize(
    ('name', 'stream', 'tolerance'),
    [
        ('honeycomb_arm', 'poses', 5e-3),
        ('honeycomb_arm', 'frames', 5e-3),
        ('pneumatic_arm', 'poses', 5e-3),
        ('floating_actuator', 'poses', 2e-3),
        ('bending_actuator', 'fiber', 1e-3),
    ],
)
def test_without_a_state_the_sensors_tell_it(
    tmp_path: Path, name: str, stream: str, tolerance: float
) -> None:
    robot = load(name)
    motion = driven(robot, 1.5)
    path = write_bag(tmp_path / 'run', Rig(robot, motion, '/left'), [stream, 'pressure'], RATES)
    found = read_recording(path, robot)
    assert ('fiber' if stream == 'fiber' else 'poses') in found.source
    np.testing.assert_allclose(found.q, motion.q, atol=tolerance)
    inner = slice(20, -20)  # the spline is natural at its ends
    np.testing.assert_allclose(found.qd[inner], motion.qd[inner], atol=50.0 * tolerance)


def test_poses_are_taken_where_they_are_asked_for_though_there_is_a_state(
    tmp_path: Path, arm: sd.Robot
) -> None:
    path = write_bag(tmp_path / 'run', Rig(arm, driven(arm, 1.0)), ['state', 'poses', 'pressure'], RATES)
    assert read_recording(path, arm).source.startswith('state')
    assert read_recording(path, arm, source='poses').source.startswith('poses of plate0')


def test_a_body_that_is_seen_elsewhere_now_and_then_does_not_bend_the_robot(
    tmp_path: Path, arm: sd.Robot
) -> None:
    motion = driven(arm, 2.0)
    with BagWriter(tmp_path / 'run') as bag:
        out = SampleWriter(bag)
        for k, (t_ns, kind, topic, fields) in enumerate(Rig(arm, motion).rows('poses', 100.0)):
            if kind == 'pose' and k % 97 == 50:
                fields = fields[0], fields[1] + np.array([0.0, 0.4, 0.0])
            getattr(out, kind)(topic, t_ns, *fields)
        for t_ns, kind, topic, fields in Rig(arm, motion).rows('pressure', 100.0):
            getattr(out, kind)(topic, t_ns, *fields)
    np.testing.assert_allclose(read_recording(tmp_path / 'run', arm).q, motion.q, atol=5e-3)


def test_a_body_may_be_missing_from_a_frame(tmp_path: Path, arm: sd.Robot) -> None:
    motion = driven(arm, 2.0)
    with BagWriter(tmp_path / 'run') as bag:
        out = SampleWriter(bag)
        for k, (t_ns, _, topic, (names, quat, p)) in enumerate(Rig(arm, motion).rows('frames', 100.0)):
            seen = [n for n in range(len(names)) if not (k % 10 == 5 and n == 2)]
            out.bodies(topic, t_ns, [names[n] for n in seen], quat[seen], p[seen])
        out.bodies('/mocap/frame', START_NS + 2_001_000_000, [], [], [])
        for t_ns, kind, topic, fields in Rig(arm, motion).rows('pressure', 100.0):
            getattr(out, kind)(topic, t_ns, *fields)
    np.testing.assert_allclose(read_recording(tmp_path / 'run', arm).q, motion.q, atol=5e-3)


def test_frames_of_other_bodies(tmp_path: Path, arm: sd.Robot) -> None:
    with BagWriter(tmp_path / 'run') as bag:
        out = SampleWriter(bag)
        for k in range(20):
            t_ns = START_NS + k * 10_000_000
            out.pressures('/pressure/measured', t_ns, arm.chamber_names, np.zeros(len(arm.chamber_names)))
            out.bodies('/mocap/frame', t_ns, ['hat'], [[0.0, 0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]])
    assert 'has poses of hat, but none of honeycomb_arm, which has plate0, ' in refusal(tmp_path / 'run', arm)


def test_gaps_are_marked(tmp_path: Path) -> None:
    robot = load('bending_actuator')
    with BagWriter(tmp_path / 'run') as bag:
        out = SampleWriter(bag)
        for k in range(300):
            t_ns = START_NS + k * 10_000_000
            out.pressures('/pressure/measured', t_ns, robot.chamber_names, np.zeros(len(robot.chamber_names)))
            if not 100 <= k < 200:
                still = np.zeros(robot.nq)
                out.state('/state', t_ns, robot.name, robot.coordinate_names, (still, still))
    found = read_recording(tmp_path / 'run', robot)
    assert found.seen is not None
    lost = found.t[~found.seen]
    assert lost.min() == pytest.approx(0.99 + 0.25 + 0.01, abs=0.011)
    assert lost.max() == pytest.approx(2.0 - 0.25 - 0.01, abs=0.011)


def test_a_coarser_grid_takes_means_and_a_finer_one_straight_lines() -> None:
    t = np.arange(1001) / 1000.0
    wave = np.stack([t, np.sin(2.0 * np.pi * 100.0 * t)], 1)
    coarse = resample(t, wave, np.arange(1, 20) / 20.0)
    np.testing.assert_allclose(coarse[:, 0], np.arange(1, 20) / 20.0, atol=1e-9)
    np.testing.assert_allclose(coarse[:, 1], 0.0, atol=1e-3)
    np.testing.assert_allclose(resample(t[::100], wave[::100, :1], t[::10])[:, 0], t[::10], atol=1e-12)


def test_a_part_starts_at_zero(run: Path, arm: sd.Robot) -> None:
    whole = read_recording(run, arm)
    part = whole.part(1.0, 2.0)
    assert (part.t[0], part.t[-1]) == (0.0, pytest.approx(1.0))
    np.testing.assert_array_equal(part.q, whole.q[100:201])
    with pytest.raises(ValueError, match='expected times within 0 to 3 s, got 7 to 8'):
        whole.part(7.0, 8.0)


def test_arrays_are_checked() -> None:
    t, x = np.arange(5) / 10.0, np.zeros((5, 2))
    with pytest.raises(ValueError, match=r'qd: expected 5 rows, got shape \(4, 2\)'):
        Recording('arm', t, x, x[:4], x, x)
    with pytest.raises(ValueError, match='t: expected even intervals'):
        Recording('arm', t**2, x, x, x, x)
    with pytest.raises(ValueError, match='q: expected finite numbers, got nan'):
        Recording('arm', t, x * np.nan, x, x, x)


# ---- what is wrong with a bag ----------------------------------------------------------------------------------------


def refusal(path: Path, robot: sd.Robot, **options: str) -> str:
    with pytest.raises(BagError) as caught:
        read_recording(path, robot, **options)
    line = str(caught.value)
    assert line.startswith(f'bag {path}: ')
    assert '\n' not in line
    return line


def test_the_bag_of_another_robot(run: Path) -> None:
    assert 'is not of pneumatic_arm: /pressure/measured has no chamber' in refusal(run, load('pneumatic_arm'))


def test_a_state_of_another_robot(tmp_path: Path, arm: sd.Robot) -> None:
    with BagWriter(tmp_path / 'run') as bag:
        out = SampleWriter(bag)
        for k in range(10):
            t_ns = START_NS + k * 10_000_000
            out.pressures('/pressure/measured', t_ns, arm.chamber_names, np.zeros(len(arm.chamber_names)))
            out.state('/state', t_ns, 'finger', ['u', 'v'], (np.zeros(2), np.zeros(2)))
    line = refusal(tmp_path / 'run', arm)
    assert (
        'is not of honeycomb_arm: /state is of finger with the coordinates u, v; expected segment1_theta1'
        in line
    )


def test_poses_that_no_such_robot_takes(tmp_path: Path, arm: sd.Robot) -> None:
    path = write_bag(tmp_path / 'run', Rig(arm, driven(arm, 0.5)), ['poses', 'pressure'], RATES)
    segments = [{'name': f'segment{k}', 'length': 0.4, 'mass': 1.0} for k in range(1, 5)]
    longer = load('honeycomb_arm', {'segments': segments})
    assert 'is not of honeycomb_arm: its tracked bodies are' in refusal(path, longer)


def test_missing_topics(tmp_path: Path, arm: sd.Robot) -> None:
    rig = Rig(arm, driven(arm, 0.3))
    without_pressure = write_bag(tmp_path / 'a', rig, ['state'], RATES)
    assert 'has no topic /pressure/measured; it has /state' in refusal(without_pressure, arm)
    without_motion = write_bag(tmp_path / 'b', rig, ['pressure'], RATES)
    line = refusal(without_motion, arm)
    assert 'has no state or poses of honeycomb_arm (topics mocap/plate0/pose' in line
    assert line.endswith('it has /pressure/command, /pressure/measured')
    assert 'has no topic /state' in refusal(without_motion, arm, source='state')


def test_two_robots_in_one_bag(tmp_path: Path, arm: sd.Robot) -> None:
    with BagWriter(tmp_path / 'run') as bag:
        for name in ('left', 'right'):
            SampleWriter(bag).pressures(f'/{name}/pressure/measured', START_NS, ['a'], [0.0])
    line = refusal(tmp_path / 'run', arm)
    assert 'has several topics pressure/measured: /left/pressure/measured, /right/pressure/measured' in line


def test_a_topic_of_another_type(tmp_path: Path, arm: sd.Robot) -> None:
    with BagWriter(tmp_path / 'run') as bag:
        SampleWriter(bag).wrench('/pressure/measured', START_NS, [0.0] * 6)
        SampleWriter(bag).wrench('/state', START_NS, [0.0] * 6)
    line = refusal(tmp_path / 'run', arm)
    assert (
        'is of type geometry_msgs/msg/WrenchStamped; expected soft_robot_suite/msg/ChamberPressures' in line
    )


def test_a_bag_that_is_too_short(tmp_path: Path, arm: sd.Robot) -> None:
    path = write_bag(tmp_path / 'run', Rig(arm, driven(arm, 0.02)), ['state', 'pressure'], RATES)
    assert '/state has 3 messages; expected at least 5' in refusal(path, arm)


def test_truncated_and_foreign_bags(tmp_path: Path, run: Path, arm: sd.Robot) -> None:
    cut = tmp_path / 'run'
    shutil.copytree(run, cut)
    (file,) = cut.glob('*.mcap')
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert 'is damaged, truncated or not a rosbag2 bag' in refusal(cut, arm)
    foreign = tmp_path / 'old.bag'
    foreign.write_bytes(b'#ROSBAG V2.0\n')
    assert 'is damaged, truncated or not a rosbag2 bag' in refusal(foreign, arm)
    assert 'does not exist' in refusal(tmp_path / 'nowhere', arm)


def test_arguments(run: Path, arm: sd.Robot) -> None:
    with pytest.raises(ValueError, match='source must be one of auto, state, poses'):
        read_recording(run, arm, source='guess')
    with pytest.raises(ValueError, match='rate must be > 0'):
        read_recording(run, arm, rate=0.0)
