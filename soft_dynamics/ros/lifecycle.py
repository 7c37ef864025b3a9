"""Base class of nodes that command hardware: automatic start, and shutdown to a safe state."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from soft_dynamics.ros.report import report

_Callback = Callable[[LifecycleState], TransitionCallbackReturn]
SUCCESS, FAILURE, ERROR = (
    TransitionCallbackReturn.SUCCESS,
    TransitionCallbackReturn.FAILURE,
    TransitionCallbackReturn.ERROR,
)
AUTOSTART = 'configure and activate the node at start'
_REAL_TIME = 'use_sim_time must be false: this node commands hardware'


class ManagedNode(LifecycleNode):
    """Lifecycle node whose transitions report errors, undo failures and end in a safe state.

    Subclasses override on_configure, on_activate, on_deactivate, on_cleanup and on_shutdown as in any
    lifecycle node, return `super().on_...(state)`, and raise on errors:

    - on_configure or on_activate fails: one line in the log, then on_cleanup or on_deactivate undoes the
      partial transition, so both must support that; the node keeps its state, ready for the next attempt;
    - on_deactivate or on_cleanup fails: one line, then on_error runs on_cleanup; the node is unconfigured;
    - shutdown by service, SIGINT, SIGTERM or SIGHUP: on_deactivate if active, on_cleanup if configured, on_shutdown.

    Parameter `autostart` (default true): configure and activate as soon as the node runs.

    A class that commands hardware sets `refuses_simulated_time`: with a replayed clock, recorded messages would look
    new.
    """

    refuses_simulated_time = False

    def __init__(self, node_name: str, **kwargs: Any) -> None:
        super().__init__(node_name, **kwargs)
        if self.refuses_simulated_time:
            if self.get_parameter('use_sim_time').value:
                raise ValueError(_REAL_TIME)
            self.add_on_set_parameters_callback(_refuse_simulated_time)
        self._callbacks = {
            State.TRANSITION_STATE_CONFIGURING: self._upward(self.on_configure, self.on_cleanup),
            State.TRANSITION_STATE_ACTIVATING: self._upward(self.on_activate, self.on_deactivate),
            State.TRANSITION_STATE_DEACTIVATING: self._reported(self.on_deactivate),
            State.TRANSITION_STATE_CLEANINGUP: self._reported(self.on_cleanup),
            State.TRANSITION_STATE_SHUTTINGDOWN: self._shut_down,
            State.TRANSITION_STATE_ERRORPROCESSING: self._reported(self.on_error),
        }
        self._rclpy_change_state = self._service_change_state.callback
        self._service_change_state.callback = self._change_state
        autostart = ParameterDescriptor(description=AUTOSTART, read_only=True)
        if self.declare_parameter('autostart', True, autostart).value:
            self._autostart_timer = self.create_timer(
                0.0, self._autostart, clock=Clock(clock_type=ClockType.STEADY_TIME)
            )

    @property
    def active(self) -> bool:
        """Whether the node is active."""
        return bool(self._state_machine.current_state[0] == State.PRIMARY_STATE_ACTIVE)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Exclude existing objects from garbage collection, which would delay callbacks by 50 ms."""
        gc.freeze()
        return super().on_configure(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release the resources of a failed transition."""
        self.on_cleanup(state)
        return super().on_error(state)

    def destroy_node(self) -> None:
        """Run the shutdown transition, which leaves the hardware safe, then destroy the node."""
        state_id, label = self._state_machine.current_state
        if state_id != State.PRIMARY_STATE_FINALIZED:
            if self.context.ok():
                self.trigger_shutdown()
            else:  # transitions can no longer be published
                self._shut_down(LifecycleState(label, state_id))
        super().destroy_node()

    def _autostart(self) -> None:
        self.destroy_timer(self._autostart_timer)
        if self.trigger_configure() == SUCCESS:
            self.trigger_activate()

    def _reported(self, callback: _Callback, otherwise: TransitionCallbackReturn = ERROR) -> _Callback:
        """Wrap a transition callback to report exceptions, which rclpy swallows silently."""

        def reported(state: LifecycleState) -> TransitionCallbackReturn:
            try:
                return callback(state)
            except Exception as error:
                report(self.get_logger(), f'{callback.__name__} failed', error)
                return otherwise

        return reported

    def _upward(self, callback: _Callback, undo: _Callback) -> _Callback:
        attempt, undo = self._reported(callback, FAILURE), self._reported(undo)

        def upward(state: LifecycleState) -> TransitionCallbackReturn:
            result = attempt(state)
            if result != SUCCESS:
                undo(state)
            return result

        return upward

    def _shut_down(self, state: LifecycleState) -> TransitionCallbackReturn:
        if state.state_id == State.PRIMARY_STATE_ACTIVE:
            self._reported(self.on_deactivate)(state)
        if state.state_id != State.PRIMARY_STATE_UNCONFIGURED:
            self._reported(self.on_cleanup)(state)
        return self._reported(self.on_shutdown)(state)

    def _change_state(
        self, request: ChangeState.Request, response: ChangeState.Response
    ) -> ChangeState.Response:
        """Reject transitions that the current state does not allow; in rclpy 7.1 they end the process."""
        try:
            return self._rclpy_change_state(request, response)
        except RuntimeError:
            response.success = False
            return response


def _refuse_simulated_time(parameters: list[Parameter]) -> SetParametersResult:
    simulated = any(p.name == 'use_sim_time' and p.value for p in parameters)
    return SetParametersResult(successful=not simulated, reason=_REAL_TIME if simulated else '')
