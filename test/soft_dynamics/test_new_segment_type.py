"""A segment type from outside the package: one class and one line in the table work throughout the suite."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pytest
import yaml

import soft_dynamics as sd
from soft_control.laws.predictive import PredictiveGains, PredictiveLaw
from soft_control.safety.plausibility import Plausible
from soft_dynamics.array import Array
from soft_dynamics.description.writer import write_description
from soft_dynamics.geometry import urdf
from soft_dynamics.geometry.tube import tube
from soft_dynamics.kernels.chain import FIXED, PRISMATIC
from soft_dynamics.reader import NAME, quantity
from soft_dynamics.segments import TYPES, Coordinate, Material, Segment
from soft_dynamics.segments.look import Joint, Visual
from soft_dynamics.segments.pose_fit import Fit
from soft_dynamics.segments.rig_parts import CutJoint, Pieces
from soft_estimation.inverse_kinematics.pose_tracking import Tracking
from soft_estimation.kalman.model_filter import ModelFilter
from soft_hw_bridge.rig.plant import Plant
from tools import robot_file_page

if TYPE_CHECKING:
    from soft_dynamics.model.assembly import Assembly

Z = 2
PAGE = Path(__file__).parents[2] / 'docs' / 'adding' / 'segment_type.md'


@dataclass(frozen=True)
class Bellows(Segment):
    """A bellows that only extends along z; its mass is at its end."""

    works: ClassVar[tuple[str, ...]] = ('gain', 'volume')

    type: Literal['bellows']
    name: str = quantity(form=NAME)
    length: float = quantity(unit='m', above=0.0, doc='at rest')
    mass: float = quantity(unit='kg', least=0.0)
    material: Material = Material()

    def own_coordinates(self) -> tuple[Coordinate, ...]:
        return (Coordinate('l', 'length', 'm', self.length, self.length),)

    def build(self, chain: Assembly) -> None:
        e = chain.element(PRISMATIC, axis=Z)
        k, k3, d, rest = self.material.lists(1)
        chain.set_material(e, k, k3, d, rest if self.material.rest else [self.length])
        chain.add_mass(e, self.mass, (0.0, 0.0, 0.0))
        chain.element(FIXED)

    def volume_gain(self, area: float, position: tuple[float, ...]) -> Array:
        return np.array([area])

    def rig_parts(self) -> Pieces:
        slide = CutJoint('l', 'prismatic', 'z', 0, straight=self.length)
        return Pieces((slide.of(self.material),))

    def urdf_joints(self, slices: int) -> list[Joint]:
        look = Visual(self.display_radius, self.length, (0.0, 0.0, -0.5 * self.length))
        return [
            Joint(f'{self.name}_l', 'prismatic', f'{self.name}_end', visuals=(look,)),
            Joint(f'{self.name}_fixed', 'fixed', self.name),
        ]


class BellowsWithoutParts(Bellows):
    """The same, without support for the virtual rig."""

    rig_parts = Segment.rig_parts


class InvertibleBellows(Bellows):
    """The same, with a closed form for its length that counts its calls."""

    asked: ClassVar[list[int]] = []

    def inverse(self, X_BT: Array, near: Array) -> Fit:
        self.asked.append(len(X_BT))
        p = X_BT[..., :3, 3]
        return Fit(p[..., 2:], np.zeros(len(p)), np.linalg.norm(p[..., :2], axis=-1))


FILE = {
    'format': 1,
    'name': 'toy',
    'gravity': [0.0, 0.0, -9.81],
    'segments': [
        {'type': 'bellows', 'name': 'lift', 'length': 0.1, 'mass': 0.2}
        | {'material': {'stiffness': [400.0], 'damping': [6.0]}},
        {'type': 'link', 'name': 'palm', 'length': 0.05, 'mass': 0.1},
    ],
    'actuation': {
        'pressure_max': 1e5,
        'chambers': [{'name': 'air', 'segment': 'lift', 'work': 'volume', 'area': 1e-4}],
    },
    'sensors': [{'name': 'plate', 'kind': 'mocap', 'frame': 'palm'}],
}


@pytest.fixture(params=[Bellows, InvertibleBellows])
def toy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> sd.Robot:
    monkeypatch.setitem(TYPES, 'bellows', request.param)
    file = tmp_path / 'toy.yaml'
    file.write_text(yaml.safe_dump(FILE), encoding='utf-8')
    return sd.load(file)


def test_the_page_shows_this_type() -> None:
    assert inspect.getsource(Bellows) in PAGE.read_text(encoding='utf-8')


def test_the_page_of_robot_files_describes_it() -> None:
    table = robot_file_page.table(Bellows)
    assert '| `length` | number > 0 | m | **required** | at rest |' in table


def test_a_type_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(
        sd.RobotFileError, match=r"segments\[0\].type: expected one of arc, .*, found 'bellows'"
    ):
        sd.Robot.from_dict(FILE)


def test_its_mistakes_are_reported_like_those_of_all_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TYPES, 'bellows', Bellows)
    lift, palm = FILE['segments']
    bad = {'segments': [{**lift, 'length': -1.0}, palm]}
    with pytest.raises(sd.RobotFileError, match=r'segments\[0\].length: expected a finite number > 0 \[m\]'):
        sd.Robot.from_dict(FILE | bad)
    wrench = {
        'actuation': {
            **FILE['actuation'],
            'chambers': [{'name': 'a', 'segment': 'lift', 'work': 'end_force'}],
        }
    }
    with pytest.raises(sd.RobotFileError, match='end_force needs a segment of type disc'):
        sd.Robot.from_dict(FILE | wrench)


def test_a_file_that_is_written_again_is_the_same_robot(toy: sd.Robot, tmp_path: Path) -> None:
    write_description(tmp_path / 'again.yaml', toy.description, 'again')
    assert sd.load(tmp_path / 'again.yaml').description == toy.description


def test_its_dynamics_are_those_of_a_mass_on_a_spring(toy: sd.Robot) -> None:
    assert (toy.coordinate_names, toy.coordinate_units) == (('lift_l',), ('m',))
    np.testing.assert_allclose(toy.rest, [0.1])
    np.testing.assert_allclose(toy.mass_matrix([0.12]), [[0.3]], rtol=1e-12)
    force = 0.3 * 2.0 + 0.3 * 9.81 + 400.0 * 0.02 + 6.0 * 0.5
    np.testing.assert_allclose(toy.inverse_dynamics([0.12], [0.5], [2.0]), [force], rtol=1e-12)
    np.testing.assert_allclose(toy.actuation([0.12]), [[1e-4]])


def test_it_swings_as_the_closed_form(toy: sd.Robot) -> None:
    t = np.linspace(0.0, 0.6, 61)
    p = 5e4
    motion = toy.simulate([0.1], [0.0], np.full((t.size, 1), p), t)
    w0, decay = np.sqrt(400.0 / 0.3), 6.0 / (2 * 0.3)
    w = np.sqrt(w0**2 - decay**2)
    end = 0.1 + (1e-4 * p - 0.3 * 9.81) / 400.0
    swing = (0.1 - end) * np.exp(-decay * t) * (np.cos(w * t) + decay / w * np.sin(w * t))
    np.testing.assert_allclose(motion.q[:, 0], end + swing, atol=1e-6)


def test_its_urdf_and_its_tube_end_where_the_model_ends(toy: sd.Robot, tmp_path: Path) -> None:
    made = urdf.model(toy)
    X = np.eye(4)
    for X_PC in made.transforms(np.array([0.13])):
        X = X @ X_PC
    np.testing.assert_allclose(X, toy.pose([0.13], 'tip'), atol=1e-12)
    text = urdf.to_xml(made)
    assert 'name="lift_l" type="prismatic"' in text
    np.testing.assert_allclose(tube(toy, np.array([0.13])).points[-1], [0.0, 0.0, 0.18], atol=1e-9)


def test_poses_give_its_coordinates_with_and_without_a_closed_form(toy: sd.Robot) -> None:
    InvertibleBellows.asked.clear()
    found = Tracking(toy).configuration({'plate': toy.pose([0.137], 'palm')})
    np.testing.assert_allclose(found.q, [0.137], atol=1e-9)
    assert found.observed.all()
    assert bool(InvertibleBellows.asked) == isinstance(toy.description.segments[0], InvertibleBellows)


def test_estimator_and_safety_take_it(toy: sd.Robot) -> None:
    ModelFilter(toy)
    PredictiveLaw(toy, PredictiveGains())
    plausible = Plausible.of(toy)
    safety = toy.description.safety
    assert (plausible.centre, plausible.coordinate) == ([0.1], [0.1 * safety.stretch_limit])


def test_the_virtual_rig_hangs_as_the_closed_form(toy: sd.Robot) -> None:
    plant = Plant(toy.description)
    plant.advance(3.0, np.array([5e4]))
    weight = (0.5 * 0.2 + 0.1) * 9.81  # half of the bellows, whose mass is distributed here, and the palm
    assert plant.poses()[-1][2, 3] == pytest.approx(0.15 + (1e-4 * 5e4 - weight) / 400.0, abs=1e-6)


def test_the_virtual_rig_says_that_a_type_has_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TYPES, 'bellows', BellowsWithoutParts)
    with pytest.raises(
        ValueError, match=r"^segment 'lift': the virtual rig has no parts for the type bellows$"
    ):
        Plant(sd.Robot.from_dict(FILE).description)
