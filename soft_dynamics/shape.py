"""What a robot is made of and where its parts are: names, frames, Jacobians, the body as a curve."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .array import Array, are_vectors, as_array, as_states, finite
from .description.robot_description import Description
from .geometry.centerline import centerline, element_lengths
from .kernels.frames import frames_and_jacobian
from .model.joint_model import JointModel


class Shape:
    """Coordinates, frames and kinematics of one robot; immutable."""

    description: Description  # as it was read; link lengths given later are not in it
    name: str
    nq: int
    coordinate_names: tuple[str, ...]
    frame_names: tuple[str, ...]
    chamber_names: tuple[str, ...]
    _model: JointModel
    # True if coordinates are those of the joints, and springs and dampers their own: one kernel does a whole call.
    _plain: bool
    _raw: Array  # the numbers of the chain
    _frame_elements: npt.NDArray[np.intp]

    def __init__(self, description: Description) -> None:
        model = JointModel(description)
        self._set(
            description=description,
            name=description.name,
            nq=model.build.nv,
            coordinate_names=tuple(model.build.names),
            frame_names=tuple(model.build.frames),
            chamber_names=tuple(chamber.name for chamber in description.actuation.chambers),
            _model=model,
        )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f'{name}: a robot does not change; make another one by sd.load or with_tip_load')

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f'{name}: a robot does not change')

    # ---- frames --------------------------------------------------------------------------------------------------

    def forward_kinematics(self, q: Any) -> Array:
        """Poses X_WF (n_frames, 4, 4) of all frames, base to tip, in the order of `frame_names`."""
        states, single = as_states(self.nq, q=q)
        X = self._model.poses(self._model.change.position(states['q']))
        X = finite('the poses', np.ascontiguousarray(X[:, list(self._model.build.frames.values())]), states)
        return X[0] if single else X

    def pose(self, q: Any, frame: str) -> Array:
        """Pose X_WF (4, 4) of one frame; 'tip' is the last."""
        self._element(frame)
        index = -1 if frame == 'tip' else self.frame_names.index(frame)
        return np.ascontiguousarray(self.forward_kinematics(q)[..., index, :, :])

    def jacobian(self, q: Any, frame: str) -> Array:
        """6 x nq Jacobian of a frame: angular first, world aligned, at the frame's origin."""
        element = self._element(frame)
        states, single = as_states(self.nq, q=q)
        J = self._model.jacobian(self._model.change.position(states['q']), element)
        J = finite('the Jacobian', self._model.change.columns(J), states)
        return J[0] if single else J

    def frames_and_jacobian(self, q: Any) -> tuple[Array, Array]:
        """(forward_kinematics(q), jacobian(q, 'tip')), at a fraction of the price of both."""
        X: Array = np.empty((len(self.frame_names), 4, 4))
        J: Array = np.empty((6, self.nq))
        plain = self._plain and are_vectors(self.nq, q)
        if plain and frames_and_jacobian(self._raw, self._frame_elements, q, X, J):
            return X, J
        return self.forward_kinematics(q), self.jacobian(q, 'tip')

    def _element(self, frame: str, argument: str = 'frame') -> int:
        if isinstance(frame, str):
            if frame == 'tip':
                return int(self._model.chain.size) - 1
            if frame in self.frame_names:
                return self._model.build.frames[frame]
        raise ValueError(f'{argument}: expected one of {", ".join(self.frame_names)}, tip; got {frame!r}')

    # ---- body ----------------------------------------------------------------------------------------------------

    @property
    def rest(self) -> Array:
        """The coordinates at which the springs are at rest."""
        x = np.zeros(self.nq)
        for e in self._model.chain:
            x[e['iv'] : e['iv'] + e['n']] = e['rest'][: e['n']]
        return self._model.change.public_position(x)

    @property
    def length(self) -> float:
        """Length of the body at rest [m]."""
        return float(element_lengths(self._model.chain).sum())

    def centerline(self, q: Any, s_samples: Any) -> Array:
        """Points (samples, 3) of the body at the arc lengths s [m] of its rest shape, base to tip: see `centerline`."""
        states, single = as_states(self.nq, q=q)
        points = centerline(self, states['q'], as_array('s_samples', s_samples))
        points = finite('the centreline', np.ascontiguousarray(points), states)
        return points[0] if single else points
