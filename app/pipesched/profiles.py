"""A Timeline goes in, how queues and activations change over time comes out: step functions, exact.

The highest value of each is the peak that ``metrics.Metrics`` states; that is tested, as is every sum below a curve.
"""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from pipesched.metrics import Wait
from pipesched.model import Message, Timeline
from pipesched.reading import Number
from pipesched.scenario import Scenario


class Profile(NamedTuple):
    """A step function of time: ``values[i]`` holds from tick ``ticks[i]`` until just before the next one.

    The ticks rise strictly from 0; the last value holds to the end.
    """

    ticks: list[int]
    values: list[Number]

    @property
    def peak(self) -> Number:
        """The highest value."""
        return max(self.values)

    @property
    def peak_at(self) -> int:
        """The tick at which the highest value is reached first."""
        return self.ticks[self.values.index(self.peak)]

    def integral(self, end: int) -> Number:
        """Return the sum of value times ticks, from 0 to ``end``, which is not before the last step."""
        lasting = zip(self.values, self.ticks, [*self.ticks[1:], end], strict=True)
        return sum((value * (until - since) for value, since, until in lasting), 0)


def profile(changes: Iterable[tuple[int, Number]]) -> Profile:
    """Return the running sum of ``changes``, each a tick and by how much the value changes there, in any order.

    >>> profile([(2, 1), (5, -1), (3, 1), (5, -1), (2, 0)])
    Profile(ticks=[0, 2, 3, 5], values=[0, 1, 2, 0])
    """
    at: dict[int, Number] = {0: 0}
    for tick, change in changes:
        at[tick] = at.get(tick, 0) + change
    ticks: list[int] = []
    values: list[Number] = []
    level: Number = 0
    for tick in sorted(at):
        level += at[tick]
        if not values or level != values[-1]:
            ticks.append(tick)
            values.append(level)
    return Profile(ticks, values)


def queue_profile(waits: Iterable[Wait]) -> Profile:
    """Return how many of ``waits`` (one stage's of ``metrics.queues``) stand in the queue over time.

    What is below the curve is the sum of all waiting times.

    >>> queue_profile([(0, 0, 0), (0, 2, 1), (1, 4, 2)])
    Profile(ticks=[0, 1, 2, 4], values=[1, 2, 1, 0])
    """
    return profile(change for arrived, started, _ in waits for change in ((arrived, 1), (started, -1)))


class Sizes(NamedTuple):
    """What one stage keeps of one micro-batch: all its activations, and the ``entry`` alone, the input of the stage."""

    whole: Number = 1
    entry: Number = 1


ONE_EACH = Sizes()


def activation_profile(
    timeline: Timeline, device: int, sizes: Sizes = ONE_EACH, *, late: bool = False, kept: Number = 1
) -> Profile:
    """Return what ``device`` keeps for backwards over time; ``ONE_EACH`` counts activations as the metrics do.

    An activation is there from the start of F to the end of B or W. Where a forward is run again, only the ``entry`` is
    kept from the start of F on, and the whole from the start of R to the end of B or W; ``late`` means that every
    backward starts with that (GPipe s2.3: the inputs of all micro-batches, and all activations of one).

    ``kept`` is the share of an activation that stays after I until W; 1, as in the metrics, counts it whole.

    >>> from pipesched import run
    >>> activation_profile(run(schedule="1f1b", devices=2, micro_batches=2).timeline, 0).values
    [1, 2, 1, 0]
    """
    row = timeline.schedule.rows[device]
    ops = {(op.stage, op.micro_batch, op.kind) for cell in row for op in cell.ops}
    changes: list[tuple[int, Number]] = []
    # Columns may be shorter than the row: in a deadlock it is not finished.
    for cell, start, end in zip(row, timeline.starts[device], timeline.ends[device], strict=False):
        for stage, kind, micro_batch in cell.ops:
            if kind == "U" or not ((stage, micro_batch, "B") in ops or (stage, micro_batch, "W") in ops):
                continue  # nothing is kept for a backward that never comes
            again = (stage, micro_batch, "R") in ops
            if kind == "F":
                changes.append((start, sizes.entry if again or late else sizes.whole))
            elif kind == "R" or (kind in "BI" and late and not again):
                changes.append((start, sizes.whole - sizes.entry))
            if kind in "BIW":
                freed = {"B": 1, "I": 1 - kept, "W": kept}[kind]
                changes.append((end, -freed * sizes.whole))
    return profile(changes)


class Footprint(NamedTuple):
    """Bytes that a Transformer keeps of one micro-batch: per ``layer``, and per stage of ``layers`` layers."""

    layer: int
    layers: Fraction
    entry: int

    @property
    def sizes(self) -> Sizes:
        """Bytes of a stage's activations and of its input."""
        whole = self.layer * self.layers
        return Sizes(int(whole) if whole.denominator == 1 else whole, self.entry)  # whole numbers add up faster


NEEDED = ("hidden_size", "sequence_length", "heads")
"""Settings without which nothing can be said in bytes."""
SOURCE = "Korthikanti et al. 2022, arXiv 2205.05198, s4.1, eq. 1"


def footprint(scenario: Scenario, stages: int) -> Footprint | Message:
    """Return how large the activations are that a stage keeps of a micro-batch, or the message what is missing.

    A layer keeps ``s b h (34 + 5 a s / h)`` bytes where a value takes two (Korthikanti et al. 2022, arXiv 2205.05198,
    s4.1, eq. 1): 11 s b h + 5 a s^2 b in the attention, 19 s b h in the MLP, 4 s b h in the layer norms. Of these the
    dropout masks, 2 s b h + a s^2 b, take a byte each whatever the precision, so with p bytes per value it is
    ``s b h (16 p + 2) + a s^2 b (2 p + 1)``. The input of a stage is ``s b h p`` bytes. Embedding, head, tensor and
    sequence parallelism, selective recomputation and attention that never stores its scores are left out. The ``L``
    layers are spread evenly; where S does not divide L, a stage has L / S of them on average.

    >>> gpt3 = Scenario(hidden_size=12288, sequence_length=2048, heads=96, layers=96)
    >>> footprint(gpt3, 8).layer == 2048 * 12288 * (34 + 80)  # 5 a s / h = 80, as the paper says
    True
    """
    missing = [Message(f"field.{name}") for name in NEEDED if getattr(scenario, name) is None]
    if missing:
        return Message("bytes.missing" if len(missing) < len(NEEDED) else "bytes.off", {"what": missing})
    s, b, h = scenario.sequence_length, scenario.micro_batch_size, scenario.hidden_size
    a, layers, value = scenario.heads, scenario.layers, int(scenario.precision) // 8
    assert s and h and a  # none is None or 0, as nothing is missing
    if layers < stages:
        return Message("bytes.few_layers", {"layers": layers, "stages": stages})
    layer = s * b * h * (16 * value + 2) + a * s * s * b * (2 * value + 1)
    return Footprint(layer, Fraction(layers, stages), s * b * h * value)
