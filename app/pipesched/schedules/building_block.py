"""The building block of the controllable-memory schedules: one micro-batch's slots, repeated, make every row.

Rule: Pipeline Parallelism with Controllable Memory (Qi et al. 2024, arXiv 2405.15362), sections 2 and 3, and the
schedules its authors released. The paper writes B for our I. Stages lie in a V: stage s < K on device s, any other on
device 2K-1-s, so that each device has one chunk of either half. Its optional re-ordering afterwards is not done.
"""

from collections import deque
from collections.abc import Callable, Iterator

from pipesched.model import Op

PERIOD = 6
"""Slots from one micro-batch to the next: a device has F, I and W of two chunks to run for each."""

Block = Callable[[int], tuple[int, int, int, int]]
"""A device goes in, its slots for micro-batch 0 come out: F, F of the second chunk, I of that one, I."""


def repeat(devices: int, micro_batches: int, block: Block) -> Iterator[list[Op]]:
    """Yield the row of each device: ``block`` repeated every PERIOD slots, W's in the slots it leaves free.

    W's run in the order of their I's, each in the first free slot after its own. Only the order of the slots matters:
    when things really start is for the simulator to say.
    """
    for device in range(devices):
        other = 2 * devices - 1 - device
        kinds = zip(block(device), ((device, "F"), (other, "F"), (other, "I"), (device, "I")), strict=True)
        taken = {
            slot + PERIOD * micro_batch: Op(stage, kind, micro_batch)
            for slot, (stage, kind) in kinds
            for micro_batch in range(micro_batches)
        }
        row: list[Op] = []
        waiting: deque[Op] = deque()
        for slot in range(max(taken, default=-1) + 1):
            if op := taken.get(slot):
                row.append(op)
                if op.kind == "I":
                    waiting.append(op._replace(kind="W"))
            elif waiting:
                row.append(waiting.popleft())
        yield row + list(waiting)
