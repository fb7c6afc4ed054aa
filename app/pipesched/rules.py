"""An operation goes in, the values it needs and the value it makes come out.

This table is the only statement of the dependency rule in the project: the simulator, the numbers and the explanations
all read it. Operations wait for *values*, never for other operations, so a chain may mix full backwards and split ones,
and the ends of the pipe need no special case: a value of a stage that is not there is not needed.

==== ==================================================== =======================
kind needs                                                produces
==== ==================================================== =======================
F    activation of the previous stage                     activation of its stage
R    own activation                                       (its backward comes next on the device)
B    own activation, gradient of the next stage           gradient of its stage
I    own activation, gradient of the next stage           gradient of its stage
W    gradient of its own stage                            (nothing others wait for)
U    gradient of its own stage                            (nothing others wait for)
==== ==================================================== =======================

One edge more belongs to decoding (``Schedule.streams``): the first stage's F of a token needs the last stage's
activation of the token before it in the same stream.

Sources: GPipe (arXiv 1811.06965) section 2, 2.3 for R; Zero Bubble (arXiv 2401.10241) section 2 for B = I + W.
"""

from typing import NamedTuple

from pipesched.model import Op, Schedule

ACTIVATION, GRADIENT = "activation", "gradient"


class Rule(NamedTuple):
    """Which values a kind needs, as (what, offset of the stage), and what it makes."""

    needs: tuple[tuple[str, int], ...]
    produces: str | None


TABLE = {
    "F": Rule(((ACTIVATION, -1),), ACTIVATION),
    "R": Rule(((ACTIVATION, 0),), None),
    "B": Rule(((ACTIVATION, 0), (GRADIENT, +1)), GRADIENT),
    "I": Rule(((ACTIVATION, 0), (GRADIENT, +1)), GRADIENT),
    "W": Rule(((GRADIENT, 0),), None),
    "U": Rule(((GRADIENT, 0),), None),
}


class Values:
    """The values of a schedule, numbered: that of micro-batch ``j`` has the number ``base + j``.

    Numbers, because these look-ups are the inner loop of a drag of a slider.

    >>> two = Values(Schedule(((Op(0, "F", 0), Op(0, "B", 0)), (Op(1, "F", 0), Op(1, "B", 0)))))
    >>> two.needs(0, "B", 0), two.produces(1, "B")  # the own activation and the gradient of stage 1
    ((2, 1), 1)
    """

    def __init__(self, schedule: Schedule) -> None:
        self.stages, self.count, self.streams = schedule.stages, schedule.micro_batches, schedule.streams
        self._needs: dict[tuple[int, str], tuple[int, ...]] = {}

    def needs(self, stage: int, kind: str, micro_batch: int) -> tuple[int, ...]:
        """Return the numbers of the values that the operation waits for, less ``micro_batch``."""
        bases = self._needs.get((stage, kind))
        if bases is None:
            wanted = ((what, stage + offset) for what, offset in TABLE[kind].needs)
            bases = tuple(self._base(what, place) for what, place in wanted if 0 <= place < self.stages)
            self._needs[stage, kind] = bases
        if self.streams and stage == 0 and kind == "F" and micro_batch >= self.streams:
            return (*bases, self._base(ACTIVATION, self.stages - 1) - self.streams)
        return bases

    def produces(self, stage: int, kind: str) -> int | None:
        """Return the number of the value that the operation makes, less its micro-batch; None: nothing waits for it."""
        what = TABLE[kind].produces
        return None if what is None else self._base(what, stage)

    def product(self, op: Op) -> int | None:
        """Return the number of the value that ``op`` makes, its micro-batch included; None: nothing waits for it."""
        base = self.produces(op.stage, op.kind)
        return None if base is None else base + op.micro_batch

    def leaving(self, schedule: Schedule) -> frozenset[int]:
        """Return the numbers of the values that are needed on another device than the one that makes them."""
        ops = [(device, op) for device, row in enumerate(schedule.rows) for cell in row for op in cell.ops]
        homes = {self.product(op): device for device, op in ops}
        needed = ((device, base + op.micro_batch) for device, op in ops for base in self.needs(*op))
        return frozenset(number for device, number in needed if homes.get(number) != device)

    def _base(self, what: str, stage: int) -> int:
        return ((what == ACTIVATION) * self.stages + stage) * self.count
