"""Wave (Hanayo-like): stages that zig-zag over the devices, ordered by a greedy.

Placement: Hanayo (Liu et al. 2023, arXiv 2308.15762). The order is a greedy of our own, unconfirmed by the paper.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from pipesched.model import Op
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, require, schedule


@schedule(
    family="interleaved",
    source="Hanayo (Liu et al. 2023, arXiv 2308.15762) for the placement; the order is a greedy of our own",
    since=2023,
    uses=("chunks", "times_of"),
    size=lambda scenario: 2 * scenario.devices * scenario.chunks * scenario.micro_batches,
    synonyms=("Hanayo", "wave-like", "zig-zag", "snake"),
)
def wave(scenario: Scenario) -> Rows:
    """Hanayo-like: v/2 waves of stages zig-zag over the devices; a backward first, at most K micro-batches under way.

    The paper's own order could not be checked. With one wave and M = K the bubble is that of Chimera on 2K devices with
    2K micro-batches, which is what the paper builds on; for M > K the numbers are those of our greedy, not Hanayo's.
    """
    require(scenario, "chunks", lambda chunks: chunks % 2 == 0, "needs.even_chunks")
    devices, chunks = scenario.devices, scenario.chunks
    costs = scenario.costs(devices * chunks, devices)
    backward = costs.durations["B"]
    if scenario.recompute == "early":
        backward = tuple(b + f for b, f in zip(backward, costs.durations["F"], strict=True))
    return greedy(devices, scenario.micro_batches, chunks, costs.durations["F"], backward, costs.latency, devices)


def greedy(
    devices: int,
    micro_batches: int,
    chunks: int,
    forward: Sequence[int],
    backward: Sequence[int],
    latency: int,
    limit: int,
) -> Iterator[list[Op]]:
    """Yield the row of each device: an even number of ``chunks``, two per wave, F and full B.

    ``forward`` and ``backward`` are durations in ticks, one per stage; ``latency`` is that of a hop. A device that has
    nothing to do runs a B if one is ready, else an F, of the oldest micro-batch first. At most ``limit`` micro-batches
    (at least 1) are under way, from the start of F to the end of B on stage 0. O(n log n) for n operations.

    >>> [" ".join(map(str, row)) for row in greedy(2, 1, 2, [1] * 4, [2] * 4, latency=0, limit=2)]
    ['0F0 3F0 3B0 0B0', '1F0 2F0 2B0 1B0']
    """
    last = chunks * devices - 1
    entering = iter([Op(0, "F", micro_batch) for micro_batch in range(micro_batches)])
    agenda = _Agenda(devices)
    for _, op in zip(range(limit), entering, strict=False):
        agenda.add(0, 0, op)
    rows: list[list[Op]] = [[] for _ in range(devices)]
    for now, device, op in agenda.choices():
        rows[device].append(op)
        end = now + (forward if op.kind == "F" else backward)[op.stage]
        agenda.occupy(device, end)
        following = next(entering, None) if op[:2] == (0, "B") else _following(op, last)
        if following:
            home = _home(following.stage, devices)
            agenda.add(end + (latency if home != device else 0), home, following)
    yield from rows


def _home(stage: int, devices: int) -> int:
    """Return the device of ``stage``: there along all devices, back along all devices, and again."""
    along = stage % (2 * devices)
    return min(along, 2 * devices - 1 - along)


def _following(op: Op, last: int) -> Op:
    """Return what the same micro-batch does next: forward to stage ``last``, there it turns."""
    if op.kind == "F":
        return op._replace(stage=op.stage + 1) if op.stage < last else op._replace(kind="B")
    return op._replace(stage=op.stage - 1)


class _Agenda:
    """What devices can run and from when on, in order of time."""

    def __init__(self, devices: int) -> None:
        self.events: list[tuple[int, int, tuple[Op, ...]]] = []
        """Heap of (when, device, what it then can run; nothing where it only becomes free)."""
        self.ready: list[list[tuple[str, int, Op]]] = [[] for _ in range(devices)]
        """A heap per device: B before F (as in the alphabet), then the oldest micro-batch."""
        self.free = [0] * devices

    def add(self, when: int, device: int, op: Op) -> None:
        """``device`` can run ``op`` from ``when`` on."""
        heappush(self.events, (when, device, (op,)))

    def occupy(self, device: int, until: int) -> None:
        """``device`` can run nothing else before ``until``."""
        self.free[device] = until
        heappush(self.events, (until, device, ()))

    def choices(self) -> Iterator[tuple[int, int, Op]]:
        """Yield (when, device, the operation it then starts); the taker answers with occupy and add."""
        while self.events:
            now, device, ops = heappop(self.events)
            for op in ops:
                heappush(self.ready[device], (op.kind, op.micro_batch, op))
            all_known = not self.events or self.events[0][:2] != (now, device)
            if all_known and self.ready[device] and self.free[device] <= now:
                yield now, device, heappop(self.ready[device])[-1]
