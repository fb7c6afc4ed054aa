"""An operation goes in, the values it needs and the value it makes come out.

This table is the only statement of the dependency rule in the project: the simulator, the order checker and the
explanations all read it. Operations wait for *values*, never for other operations, so a chain may mix full backwards
and split ones, and the ends of the pipe need no special case: a value of a stage that is not there is not needed.

==== ==================================================== =======================
kind needs                                                produces
==== ==================================================== =======================
F    activation of the previous stage                     activation of its stage
B    own activation, gradient of the next stage           gradient of its stage
I    own activation, gradient of the next stage           gradient of its stage
W    gradient of its own stage                            (nothing others wait for)
==== ==================================================== =======================

Sources: GPipe (arXiv 1811.06965) section 2; Zero Bubble (arXiv 2401.10241) section 2 for the split of B into I and W.
"""

from typing import NamedTuple

from pipesched.model import Op

ACTIVATION, GRADIENT = "activation", "gradient"


class Value(NamedTuple):
    """Something one operation makes and another waits for: ``what`` of ``micro_batch`` at the exit of ``stage``."""

    what: str
    stage: int
    micro_batch: int


class Rule(NamedTuple):
    """Which values a kind needs, as (what, offset of the stage), and what it makes."""

    needs: tuple[tuple[str, int], ...]
    produces: str | None


TABLE = {
    "F": Rule(((ACTIVATION, -1),), ACTIVATION),
    "B": Rule(((ACTIVATION, 0), (GRADIENT, +1)), GRADIENT),
    "I": Rule(((ACTIVATION, 0), (GRADIENT, +1)), GRADIENT),
    "W": Rule(((GRADIENT, 0),), None),
}


def needs(op: Op, stages: int) -> list[Value]:
    """List the values ``op`` waits for in a pipe of ``stages`` stages.

    >>> needs(Op(0, "B", 3), stages=2)
    [Value(what='activation', stage=0, micro_batch=3), Value(what='gradient', stage=1, micro_batch=3)]
    """
    stage, kind, micro_batch = op
    return [
        Value(what, stage + offset, micro_batch) for what, offset in TABLE[kind].needs if 0 <= stage + offset < stages
    ]


def produces(op: Op) -> Value | None:
    """Return the value ``op`` makes, or None where nothing waits for it."""
    what = TABLE[op.kind].produces
    return Value(what, op.stage, op.micro_batch) if what else None
