"""Importers: the bag holds the file's data in SI, and every mistake gives one line with file, place and remedy."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import c3d
import numpy as np
import pytest
import yaml
from real_recordings import RECORDINGS, needs_recordings
from scipy.spatial.transform import Rotation

from soft_dynamics.bags import open_bag
from soft_estimation.commands.import_recording import main
from soft_estimation.importing import MappingError, load_mapping, mapping_names

CSV = """time,p1,p2,x,y,z,qx,qy,qz,qw,fx,fy,fz,tx,ty,tz,a1
0.00,1.0,2.0,10,20,30,0,0,0,1,1,2,3,4,5,6,90
0.01,1.5,2.5,11,20,30,0,0,0.6,0.8,1,2,3,4,5,6,90
0.02,1.5,2.5,11,20,30,1,0,0,0,1,2,3,4,5,6,45
"""
PRESSURES = {
    'type': 'pressures',
    'topic': 'pressure/measured',
    'unit': 'kPa',
    'chambers': ['left', 'right'],
    'columns': ['p1', 'p2'],
}
POSE = {
    'type': 'pose',
    'topic': 'mocap/tip/pose',
    'unit': 'mm',
    'position': ['x', 'y', 'z'],
    'quaternion': ['qx', 'qy', 'qz', 'qw'],
}
WRENCH = {
    'type': 'wrench',
    'topic': 'ft/wrench',
    'force': ['fx', 'fy', 'fz'],
    'torque': ['tx', 'ty', 'tz'],
    'torque_unit': 'N mm',
}
JOINTS = {'type': 'joints', 'topic': 'motor', 'names': ['a'], 'columns': ['a1'], 'unit': 'deg'}
POINT = {'type': 'point', 'topic': 'mocap/dot/point', 'unit': 'cm', 'position': ['x', 'y', 'z']}


class Bench:
    """A folder with a recording and a mapping, and the command to import it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def run(
        self, content: str | bytes, name: str = 'run.csv', *arguments: str, **mapping: Any
    ) -> tuple[int, str]:
        """Import a file with this content; return exit code and output."""
        file, rules = self.folder / name, self.folder / 'map.yaml'
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        rules.write_text(yaml.safe_dump({'format': 1, 'time': {'column': 'time'}, **mapping}))
        code = main([str(file), str(rules), '--out', str(self.folder / 'bag'), *arguments])
        said = self.capsys.readouterr()
        return code, said.err or said.out

    def refusal(self, content: str | bytes, name: str = 'run.csv', *arguments: str, **mapping: Any) -> str:
        """Return the one-line error."""
        code, line = self.run(content, name, *arguments, **mapping)
        assert code == 2
        assert line.startswith('import_recording: ')
        assert line.count('\n') == 1
        assert all(file.name.startswith(('map', 'run')) for file in self.folder.iterdir())  # no bag
        return line

    def messages(self, topic: str) -> list[Any]:
        with open_bag(self.folder / 'bag') as bag:
            return [bag.decode(message) for message in bag.messages([topic])]


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Bench:
    return Bench(tmp_path, capsys)


def stamp(message: Any) -> float:
    return message.header.stamp.sec % 60 + message.header.stamp.nanosec * 1e-9


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_columns_arrive_in_si_at_their_times(bench: Bench, storage: str) -> None:
    topics = [PRESSURES, POSE, WRENCH, JOINTS, POINT]
    start = '2024-05-01T10:00:30+00:00'
    code, said = bench.run(CSV, 'run.csv', '--storage', storage, topics=topics, start=start)
    assert (code, said) == (0, f'{bench.folder / "bag"}: 15 messages, 5 topics, 0.02 s\n')
    pressures = bench.messages('/pressure/measured')
    assert [stamp(m) for m in pressures] == pytest.approx([30.0, 30.01, 30.02])
    assert pressures[0].names == ['left', 'right']
    np.testing.assert_allclose([m.pressure for m in pressures], [[1e3, 2e3], [1.5e3, 2.5e3], [1.5e3, 2.5e3]])
    pose = bench.messages('/mocap/tip/pose')[1].pose
    assert (pose.position.x, pose.position.y, pose.orientation.z) == pytest.approx((0.011, 0.02, 0.6))
    wrench = bench.messages('/ft/wrench')[0].wrench
    assert (wrench.force.z, wrench.torque.x) == pytest.approx((3.0, 0.004))
    assert [m.position[0] for m in bench.messages('/motor')] == pytest.approx(
        [np.pi / 2, np.pi / 2, np.pi / 4]
    )
    assert bench.messages('/mocap/dot/point')[0].point.z == pytest.approx(0.3)


def test_a_file_without_header_gzipped_with_another_delimiter(bench: Bench) -> None:
    content = gzip.compress(b'10;1;2\n20;3;4\n')
    topics = [{**PRESSURES, 'unit': 'psi'}]
    time = {'column': 'time', 'unit': 'ms'}
    code, _ = bench.run(
        content, 'run.txt.gz', topics=topics, names=['time', 'p1', 'p2'], delimiter=';', time=time
    )
    assert code == 0
    second = bench.messages('/pressure/measured')[1]
    assert stamp(second) == pytest.approx(0.01)
    np.testing.assert_allclose(second.pressure, [3 * 6894.757293168, 4 * 6894.757293168])


def test_repeats_are_left_out_for_a_while_and_trials_are_chosen(bench: Bench) -> None:
    rows = [f'{k / 100},{k // 10},{7 if k < 50 else 8}' for k in range(100)]
    topics = [{**PRESSURES, 'columns': ['p1', 'p1'], 'drop_repeats': 0.055}]
    code, _ = bench.run('\n'.join(['time,p1,id', *rows]), topics=topics, only=[{'column': 'id', 'value': 8}])
    assert code == 0
    found = bench.messages('/pressure/measured')
    assert [m.pressure[0] for m in found] == [1e3 * p for p in (5, 5, 6, 6, 7, 7, 8, 8, 9, 9)]
    assert stamp(found[1]) == pytest.approx(0.06)


def test_the_world_is_turned_and_only_the_normal_trusted(bench: Bench) -> None:
    """A plate tilted by 0.3 rad about x in a world with y up, occasionally flipped by 180 degrees."""
    tilt = Rotation.from_rotvec([0.3, 0.0, 0.0]) * Rotation.from_rotvec([-np.pi / 2, 0.0, 0.0])
    flipped = tilt * Rotation.from_rotvec([np.pi, 0.0, 0.0])
    spun = tilt * Rotation.from_rotvec([0.0, 0.0, 2.0])
    lines = [','.join(map(str, [k, 1, 2, 3, *R.as_quat()])) for k, R in enumerate((tilt, flipped, spun))]
    topics = [{**POSE, 'trust': 'normal', 'unit': 'm'}]
    code, _ = bench.run(
        '\n'.join(['time,x,y,z,qx,qy,qz,qw', *lines]), topics=topics, world={'rpy': [np.pi / 2, 0.0, 0.0]}
    )
    assert code == 0
    for message in bench.messages('/mocap/tip/pose'):
        p, r = message.pose.position, message.pose.orientation
        assert (p.x, p.y, p.z) == pytest.approx((1.0, -3.0, 2.0))
        turned = Rotation.from_quat([r.x, r.y, r.z, r.w]).as_rotvec()
        np.testing.assert_allclose(turned, [0.3, 0.0, 0.0], atol=1e-9)


def test_constants_where_only_the_set_point_is_known(bench: Bench) -> None:
    topics = [{'type': 'pressures', 'topic': 'p', 'chambers': ['a'], 'constants': [200.0], 'unit': 'mbar'}]
    assert bench.run(CSV, topics=topics)[0] == 0
    assert [m.pressure[0] for m in bench.messages('/p')] == pytest.approx([2e4] * 3)


# ---- c3d -------------------------------------------------------------------------------------------------------------

PLACE = np.array([0.1, 0.2, 0.3])
MARKERS = np.array([[0.03, 0.0, 0.0], [-0.01, 0.02, 0.0], [0.0, -0.02, 0.01], [0.0, 0.0, -0.03]])


def c3d_file(path: Path, turns: list[Rotation], lost: tuple[int, int] | None = None) -> bytes:
    """A file from the library's own writer: a rigid body of four markers that rotates about PLACE."""
    writer = c3d.Writer(point_rate=50.0, analog_rate=0.0, point_units='m')
    writer.set_point_labels([f'Tip {k}' for k in range(4)])
    for k, R in enumerate(turns):
        points = np.zeros((4, 5), np.float32)
        points[:, :3] = R.apply(MARKERS) + PLACE
        if lost is not None and lost[0] == k:
            points[lost[1], 3] = -1.0
        writer.add_frames([(points, np.array([[]]))])
    with path.open('wb') as file:
        writer.write(file)
    return path.read_bytes()


BODY = {'type': 'pose', 'topic': 'mocap/tip/pose', 'markers': ['Tip 0', 'Tip 1', 'Tip 2', 'Tip 3']}
TURNS = [Rotation.from_rotvec([0.0, 0.2 * k, 0.1 * k]) for k in range(5)]


def test_markers_of_a_rigid_body_become_a_pose(bench: Bench) -> None:
    content = c3d_file(bench.folder / 'run.c3d', TURNS)
    code, said = bench.run(content, 'run.c3d', topics=[BODY], time={})
    assert code == 0, said
    found = bench.messages('/mocap/tip/pose')
    assert [stamp(m) for m in found] == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08])
    middle = MARKERS.mean(axis=0)
    for message, turn in zip(found, TURNS, strict=True):
        p, r = message.pose.position, message.pose.orientation
        np.testing.assert_allclose([p.x, p.y, p.z], turn.apply(middle) + PLACE, atol=1e-6)
        error = Rotation.from_quat([r.x, r.y, r.z, r.w]).inv() * turn
        assert error.magnitude() < 1e-5


def test_a_lost_marker_is_refused_or_dropped(bench: Bench) -> None:
    content = c3d_file(bench.folder / 'run.c3d', TURNS, lost=(2, 1))
    line = bench.refusal(content, 'run.c3d', topics=[BODY], time={})
    assert "frame 2, column 'Tip 1.x': expected a number, got nan; `missing: drop`" in line
    assert bench.run(content, 'run.c3d', topics=[{**BODY, 'missing': 'drop'}], time={})[0] == 0
    assert len(bench.messages('/mocap/tip/pose')) == 4


def test_mistakes_with_c3d_files(bench: Bench) -> None:
    content = c3d_file(bench.folder / 'run.c3d', TURNS)
    wrong = {**BODY, 'markers': ['Tip 0', 'Tip 1', 'Toe']}
    line = bench.refusal(content, 'run.c3d', topics=[wrong], time={})
    assert "run.c3d: mocap/tip/pose: no column 'Toe.x'; it has Tip 0.x, Tip 0.y" in line
    line = bench.refusal(content, 'run.c3d', topics=[{**BODY, 'unit': 'mm'}], time={})
    assert 'mocap/tip/pose: the file is in m, but the mapping says mm' in line
    assert 'is damaged or not a c3d file' in bench.refusal(
        b'nothing like it' * 99, 'run.c3d', topics=[BODY], time={}
    )
    assert 'is damaged or not a c3d file' in bench.refusal(content[:700], 'run.c3d', topics=[BODY], time={})


# ---- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('change', 'line'),
    [
        (
            ('0.02,1.5', '0.005,1.5'),
            "line 4, column 'time': time must rise, but 0.005 s follows 0.01 s",
        ),
        (('0.01,1.5', '0.00,1.5'), "line 3, column 'time': time must rise, but 0 s follows 0 s"),
        (('0.01,1.5', 'nan,1.5'), "line 3, column 'time': expected a time, got nan"),
        (
            ('0.01,1.5,2.5', '0.01,1.5,nan'),
            "line 3, column 'p2': expected a number, got nan; `missing: drop`",
        ),
        (('0.01,1.5,2.5', '0.01,1.5,'), "line 3, column 'p2': expected a number, got ''"),
        (('0.01,1.5,2.5', '0.01,1.5,high'), "line 3, column 'p2': expected a number, got 'high'"),
        (('0.02,1.5,2.5', '0.02,1.5'), 'line 4: expected 17 columns, got 16'),
        (('p1,p2', 'p1,p1'), "has two columns 'p1'"),
        (('p1,p2', 'p1,pp'), "pressure/measured: no column 'p2'; it has time, p1, pp, x, y"),
        (('time,p1', 't,p1'), "time: no column 'time'; it has t, p1"),
        (
            ('0,0,0.6,0.8', '0,0,0.6,8'),
            'line 3, columns qx, qy, qz, qw: expected a quaternion of length 1, got',
        ),
    ],
)
def test_mistakes_in_a_file_are_named_with_their_place(
    bench: Bench, change: tuple[str, str], line: str
) -> None:
    assert change[0] in CSV
    said = bench.refusal(CSV.replace(*change, 1), topics=[PRESSURES, POSE])
    assert f'{bench.folder / "run.csv"}: {line}' in said


def test_empty_files_and_files_of_another_kind(bench: Bench) -> None:
    assert 'run.csv: is empty' in bench.refusal('', topics=[PRESSURES])
    assert 'run.csv: has no rows' in bench.refusal('time,p1,p2\n', topics=[PRESSURES])
    assert 'cannot be read as text' in bench.refusal(bytes(range(256)), topics=[PRESSURES])
    assert 'cannot be read as text' in bench.refusal(b'no gzip', 'run.csv.gz', topics=[PRESSURES])
    whole = gzip.compress(b't,p1,p2\n' + b'1,2,3\n' * 999)
    for damaged in (whole[: len(whole) // 2], whole[:20] + b'\xff' * 8 + whole[28:], whole[:-6] + b'wrong!'):
        assert 'cannot be read as text' in bench.refusal(damaged, 'run.csv.gz', topics=[PRESSURES])
    assert 'needs a column of times or a rate' in bench.refusal(CSV, topics=[PRESSURES], time={})
    line = bench.refusal(CSV, topics=[PRESSURES], only=[{'column': 'p1', 'value': 3.0}])
    assert 'only: no row has p1 = 3' in line


@pytest.mark.parametrize(
    ('change', 'line'),
    [
        ({'unit': 'atm'}, "topics[0].unit: expected one of Pa, kPa, MPa, bar, mbar, psi, found 'atm'"),
        (
            {'columns': ['p1']},
            'topics[0].columns: expected one for each of 2 chambers (or constants instead), found 1',
        ),
        ({'column': ['p1']}, 'topics[0].column: unknown key'),
        ({'type': 'pressure'}, 'topics[0].type: expected one of pose, point, pressures, wrench, joints'),
    ],
)
def test_mistakes_in_a_mapping_are_named_with_their_key(
    bench: Bench, change: dict[str, Any], line: str
) -> None:
    assert f'map.yaml: {line}' in bench.refusal(CSV, topics=[{**PRESSURES, **change}])


def test_all_mistakes_of_a_mapping_are_listed(tmp_path: Path) -> None:
    path = tmp_path / 'map.yaml'
    path.write_text(
        yaml.safe_dump({'format': 2, 'time': {'rate': -1}, 'topics': [{'type': 'pose', 'topic': 'x'}]})
    )
    with pytest.raises(MappingError) as caught:
        load_mapping(path)
    assert len(caught.value.problems) == 3
    with pytest.raises(FileNotFoundError, match=r'shipped: .*ethz_beam'):
        load_mapping('nothing')


def test_the_robot_is_checked_on_request(bench: Bench) -> None:
    line = bench.refusal(CSV, 'run.csv', '--robot', 'honeycomb_arm', topics=[PRESSURES])
    assert 'left is not a chamber of honeycomb_arm; it has segment1_p1' in line
    line = bench.refusal(CSV, 'run.csv', '--robot', 'honeycomb_arm', topics=[POSE])
    assert 'mocap/tip/pose is not a sensor of honeycomb_arm; it has mocap/plate0/pose' in line
    chambers = {**PRESSURES, 'chambers': ['segment1_p1', 'segment1_p2'], 'unit': 'bar'}
    line = bench.refusal(CSV.replace('2.5', '25'), 'run.csv', '--robot', 'honeycomb_arm', topics=[chambers])
    assert 'pressure/measured: 2.5e+06 Pa if in bar; the limit of honeycomb_arm is 2.5e+05 Pa' in line


def test_a_bag_is_never_written_over(bench: Bench) -> None:
    assert bench.run(CSV, topics=[PRESSURES])[0] == 0
    code, line = bench.run(CSV, topics=[PRESSURES])
    assert (code, line.endswith('bag: exists already\n')) == (2, True)


@pytest.mark.parametrize('name', mapping_names())
def test_shipped_mappings_are_right_in_themselves(name: str) -> None:
    assert load_mapping(name).topics


# ---- recordings of real robots ---------------------------------------------------------------------------------------

REAL = [
    ('asu_two_segment_arm/apr_18_data_collect_1.txt.gz', 'asu_two_segment_arm', '/mocap/tip/pose', 70.18),
    ('asl_trunk/observations_controlled_1_first100s.csv.gz', 'asl_trunk', '/motor/measured', 99.99),
    ('asl_trunk/control_inputs_controlled_1_first100s.csv.gz', 'asl_trunk_inputs', '/motor/command', 99.99),
    ('asl_trunk/observations_manual_decay_200g.csv.gz', 'asl_trunk_decay', '/mocap/disk3/point', 4.51),
    ('ethz_silicone/beam/beam_gravity_V2_a.c3d', 'ethz_beam', '/mocap/tip/pose', 4.99),
    ('ethz_silicone/arm1seg/200mbar_V3.c3d', 'ethz_arm', '/mocap/tip/pose', 5.99),
]


@pytest.mark.real_data
@needs_recordings
@pytest.mark.parametrize(('file', 'mapping', 'topic', 'seconds'), REAL, ids=[row[1] for row in REAL])
def test_recordings_of_real_robots_become_bags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, mapping: str, topic: str, seconds: float
) -> None:
    assert main([str(RECORDINGS / file), mapping, '--out', str(tmp_path / 'bag')]) == 0
    assert f'{seconds:.2f} s' in capsys.readouterr().out
    with open_bag(tmp_path / 'bag') as bag:
        assert bag.counts[topic] > 100
        assert bag.duration == pytest.approx(seconds, abs=0.01)


@pytest.mark.real_data
@needs_recordings
def test_plates_of_the_two_segment_arm_never_turn_over(tmp_path: Path) -> None:
    file = RECORDINGS / 'asu_two_segment_arm' / 'apr_18_data_collect_1.txt.gz'
    assert main([str(file), 'asu_two_segment_arm', '--out', str(tmp_path / 'bag')]) == 0
    with open_bag(tmp_path / 'bag') as bag:
        for plate in ('base', 'mid', 'tip'):
            poses = [bag.decode(message).pose for message in bag.messages([f'/mocap/{plate}/pose'])]
            quats = np.array(
                [[p.orientation.x, p.orientation.y, p.orientation.z, p.orientation.w] for p in poses]
            )
            assert Rotation.from_quat(quats).magnitude().max() < 1.2
        pressures = [bag.decode(message).pressure for message in bag.messages(['/pressure/measured'])]
    assert 5e4 < np.max(pressures) < 2.5e5  # up to 15 psi and more, in Pa
