"""ZB-1p and ZB-2p: the automatic zero-bubble schedule, a greedy that is told how much memory it may use.

Rule: Zero Bubble (Qi et al. 2024, arXiv 2401.10241), section 3.1, and the heuristic its authors released. The paper
writes B for our I, and calls the schedule ZB-1p for a limit of K activations per device, ZB-2p for one of 2K.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from pipesched.model import Op
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, schedule

HELD_FOR_W = Fraction(1, 2)
"""Share of an activation that stays after I until W (the paper's M_W / M_B)."""


@schedule(
    family="zero_bubble",
    source="Zero Bubble (Qi et al. 2024, arXiv 2401.10241), s3.1; released heuristic of sail-sg",
    since=2023,
    uses=("memory_limit",),
    size=lambda scenario: 3 * scenario.devices * scenario.micro_batches,
    synonyms=("ZB-1p", "ZB-2p", "ZB1P", "ZB2P", "automatic", "zero bubble"),
)
def zb_auto(scenario: Scenario) -> Rows:
    """A greedy finds the order for the given times and a memory limit: K activations give ZB-1p, 2K give ZB-2p.

    Of an activation, half is counted from its I to its W, as in the paper's models (M_W / M_B from 0.37 to 0.43; any
    share up to a half reproduces its Table 5). The peak shown with the other numbers counts it whole until W.
    """
    devices = scenario.devices
    costs = scenario.costs(devices, devices)
    times = dict(costs.durations)
    if scenario.recompute == "early":
        times["I"] = tuple(i + f for i, f in zip(times["I"], times["F"], strict=True))
    limit = scenario.memory_limit or devices
    return order(devices, scenario.micro_batches, times["F"], times["I"], times["W"], costs.latency, limit)


def order(
    devices: int,
    micro_batches: int,
    forward: Sequence[int],
    input_grad: Sequence[int],
    weight_grad: Sequence[int],
    latency: int,
    limit: int,
    held_for_w: Fraction = HELD_FOR_W,
) -> Iterator[list[Op]]:
    """Yield the row of each device: one stage each, F, I and W apart.

    Durations are ticks, one per stage, forwards at least 1; ``latency`` is that of a hop. No device ever holds more
    than ``limit`` activations, where one counts 1 from the start of F to the end of I and ``held_for_w`` (in (0, 1];
    1 is how metrics.py counts) from there to the end of W. Every limit from 1 on works: 1 is one micro-batch at a time.

    The greedy runs once per setting of its three switches, each time linear in the number of operations; of its orders
    the one with the shortest longest span wins.

    >>> [" ".join(map(str, row)) for row in order(2, 2, [1, 1], [1, 1], [1, 1], latency=0, limit=2)]
    ['0F0 0F1 0I0 0W0 0I1 0W1', '1F0 1I0 1F1 1I1 1W0 1W1']
    """
    unit, kept = held_for_w.denominator, held_for_w.numerator  # memory in whole parts of an activation
    change = {"F": unit, "I": kept - unit, "W": -kept}
    times = [dict(zip("FIW", stage, strict=True)) for stage in zip(forward, input_grad, weight_grad, strict=True)]
    runs: dict[tuple[int, ...], _Greedy] = {}
    for overrun, yields, eager in product((False, True), (True, False), (True, False)):
        greedy = _Greedy(times[:devices], change, micro_batches, latency, limit * unit)
        ahead = greedy.warm_up(overrun)
        if (*ahead, yields, eager) not in runs:  # both ways to warm up may come to the same
            greedy.run(ahead, yields, eager)
            runs[*ahead, yields, eager] = greedy
    best = min(runs.values(), key=_Greedy.longest_span)
    for stage, device in enumerate(best.devices):
        micro_batch = {kind: iter(range(micro_batches)) for kind in "FIW"}
        yield [Op(stage, kind, next(micro_batch[kind])) for kind in device.kinds]


class _Device:
    """What one device has been given so far, and how far that takes it in time and memory."""

    def __init__(self, times: dict[str, int]) -> None:
        self.times = times
        self.kinds: list[str] = []
        self.forward_ends: list[int] = []
        self.gradient_end = 0  # of its newest I
        self.pending = 0  # I's whose W is still to come
        self.start = self.free = 0  # of its first operation; after its last one
        self.bubble = 0  # idle ticks between the two
        self.held = 0  # memory, in the parts of the limit


class _Greedy:
    """One run. After the warm-up, a round per micro-batch: an F for each device, first to last, an I, last to first.

    W's go where there is time to wait or memory to free. The device with the worst bubble has the longest span, so
    any other one loses nothing by being idle up to as much.
    """

    def __init__(
        self, times: list[dict[str, int]], change: dict[str, int], count: int, latency: int, limit: int
    ) -> None:
        self.devices = [_Device(stage) for stage in times]
        self.change, self.count, self.latency, self.limit = change, count, latency, limit
        self.worst = 0  # bubble of any device

    def longest_span(self) -> int:
        """Return, over all devices, the most ticks from the first start to the last end."""
        return max(device.free - device.start for device in self.devices)

    def warm_up(self, overrun: bool) -> list[int]:
        """Put the first F of every device; return how many more each has time and memory for before its first I.

        ``overrun``: the last of them may end after the gradient has come. A device must stay behind the one before it,
        which feeds it, by one F where possible.
        """
        ahead: list[int] = []
        for stage in range(len(self.devices)):
            self.put(stage, "F")
        gradient = 0
        for device in reversed(self.devices):
            f, gap = device.times["F"], max(0, gradient - device.free)
            step = max(f, 1)  # a stage without layers takes no time
            in_time = -(-gap // step) if overrun else gap // step
            in_memory = (self.limit - device.held) // self.change["F"]
            ahead.insert(0, min(in_time, in_memory, self.count - 1))
            gradient = max(gradient, device.free + ahead[0] * f) + device.times["I"] + self.latency
        for stage in range(1, len(ahead)):
            before = ahead[stage - 1]
            ahead[stage] = min(ahead[stage], before if before == self.count - 1 else max(before - 1, 0))
        return ahead

    def run(self, ahead: list[int], yields: bool, eager: bool) -> None:
        """Put all other operations, ``ahead`` being the rest of the warm-up; the switches are explained where used."""
        stages = range(len(self.devices))
        for stage in stages:
            for _ in range(ahead[stage]):
                self.put(stage, "F")
        for micro_batch in range(self.count):
            for stage in self.takers(yields) if micro_batch else ():
                while self.devices[stage].held + self.change["F"] > self.limit:
                    self.put(stage, "W")
                self.fill(stage, "F", eager)
                self.put(stage, "F")
            for stage in reversed(stages):
                if micro_batch:
                    self.fill(stage, "I", eager)
                self.put(stage, "I")
        for stage in stages:
            while self.devices[stage].pending:
                self.put(stage, "W")

    def takers(self, yields: bool) -> list[int]:
        """Return the stages that run an F in this round: one that does not is followed by all before it."""
        first = 0
        for stage, device in enumerate(self.devices):
            if len(device.forward_ends) == self.count or (yields and self.should_yield(stage)):
                first = stage + 1
        return list(range(first, len(self.devices)))

    def should_yield(self, stage: int) -> bool:
        """Tell whether the F of ``stage`` would keep a gradient waiting; no, if the next stage needs that F soon."""
        device, after = self.devices[stage], self.devices[min(stage + 1, len(self.devices) - 1)]
        if len(device.forward_ends) < len(after.forward_ends) + 2:
            return False
        gradient = after.free + after.times["F"] + after.times["I"] + self.latency
        if device.free >= gradient:
            return True
        missing = device.held + self.change["F"] - self.limit
        ws = min(device.pending, max(0, -(missing // self.change["W"])))
        if device.free + device.times["F"] + ws * device.times["W"] <= gradient:
            return False
        return gradient - device.free <= self.worst - device.bubble

    def fill(self, stage: int, kind: str, eager: bool) -> None:
        """Put W's in the time until ``stage`` can start its next ``kind``.

        One that is too long for what is left goes in where the bubble would become the worst, or always if ``eager``.
        The first device, once out of F's, has no better place for its W's than this.
        """
        device, arrival, length = self.devices[stage], self.arrival(stage, kind), self.devices[stage].times["W"]
        flush = stage == 0 and kind == "I" and len(device.forward_ends) == self.count
        while device.pending and (flush or device.free + length <= arrival):
            self.put(stage, "W")
        gap = arrival - device.free
        if device.pending and gap > 0 and (eager or gap > self.worst - device.bubble):
            self.put(stage, "W")

    def arrival(self, stage: int, kind: str) -> int:
        """Return when what the next ``kind`` of ``stage`` waits for is there."""
        if kind == "F" and stage > 0:
            return self.devices[stage - 1].forward_ends[len(self.devices[stage].forward_ends)] + self.latency
        if kind == "I" and stage + 1 < len(self.devices):
            return self.devices[stage + 1].gradient_end + self.latency
        return 0

    def put(self, stage: int, kind: str) -> None:
        """Append the next operation of ``kind`` to the row of ``stage``."""
        device = self.devices[stage]
        start = max(device.free, self.arrival(stage, kind))
        if device.kinds:
            device.bubble += start - device.free
            self.worst = max(self.worst, device.bubble)
        else:
            device.start = start
        device.free = start + device.times[kind]
        device.held += self.change[kind]
        device.kinds.append(kind)
        if kind == "F":
            device.forward_ends.append(device.free)
        elif kind == "I":
            device.gradient_end = device.free
            device.pending += 1
        else:
            device.pending -= 1
