"""A CasADi function evaluated in long doubles, one instruction at a time, to measure rounding errors of doubles."""

from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

LongArray = npt.NDArray[np.longdouble]

_OPERATIONS: dict[int, Any] = {
    ca.OP_ADD: np.add,
    ca.OP_SUB: np.subtract,
    ca.OP_MUL: np.multiply,
    ca.OP_DIV: np.divide,
    ca.OP_NEG: np.negative,
    ca.OP_SQ: np.square,
    ca.OP_SQRT: np.sqrt,
    ca.OP_SIN: np.sin,
    ca.OP_COS: np.cos,
    ca.OP_TWICE: lambda a: a + a,
    ca.OP_INV: lambda a: 1 / a,
}


def evaluate_long(function: Any, *arguments: npt.ArrayLike) -> LongArray:
    """Return the single output of a function of dense vectors."""
    flat = function.expand()
    given = [np.asarray(argument, np.longdouble) for argument in arguments]
    work = np.zeros(flat.sz_w(), np.longdouble)
    found = np.zeros(flat.nnz_out(0), np.longdouble)
    for k in range(flat.n_instructions()):
        operation, read, written = (
            flat.instruction_id(k),
            flat.instruction_input(k),
            flat.instruction_output(k),
        )
        if operation == ca.OP_CONST:
            work[written[0]] = flat.instruction_constant(k)
        elif operation == ca.OP_INPUT:
            work[written[0]] = given[read[0]][read[1]]
        elif operation == ca.OP_OUTPUT:
            found[written[1]] = work[read[0]]
        else:
            work[written[0]] = _OPERATIONS[operation](*(work[i] for i in read))
    rows, columns = flat.sparsity_out(0).get_triplet()
    dense = np.zeros(flat.size_out(0), np.longdouble)
    dense[rows, columns] = found
    return dense
