"""Array views without reference counts, for the recursions.

For every view of an array (`work[i]`), numba increments and decrements the reference count with atomic instructions. In
the branches of a recursion it does not detect that the two cancel. A borrowed array and its views are not counted.

This makes compiled loops of inverse dynamics 2.9 times and of forward dynamics 2.0 times faster for 16 joints:
`make bench ARGS='--only borrow'`. To remove it, let `borrowed` return its argument.
"""

from __future__ import annotations

from typing import Any

from numba import extending

intrinsic: Any = extending.intrinsic


@intrinsic
def borrowed(typing_context: Any, array: Any) -> Any:
    """Return the same array without a reference to its memory.

    For arguments only: the caller keeps them alive until the function returns. A new array would be freed immediately.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own = context.make_array(array)(context, builder, arguments[0])
        own.meminfo = own.meminfo.type(None)
        own.parent = own.parent.type(None)
        return own._getvalue()

    return array(array), generate
