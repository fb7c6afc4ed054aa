"""The order of each device goes in, exact starts come out: the longest path through a graph, found without the library.

Written from the papers a second time, on purpose: nothing here may import ``pipesched.rules`` or ``simulate``.
Edges run from an operation to those that wait for it: the next one on the device, and the next stage (F), the previous
stage (gradients), or the same stage (F before B or I, I before W). An edge is as long as its tail, plus a hop where it
leaves the device.
"""

from collections import defaultdict
from fractions import Fraction
from graphlib import TopologicalSorter


def sources(stage, kind, micro_batch):
    """List the operations of which one, whichever exists, makes what this one needs; one list per value."""
    if kind == "F":
        return [[(stage - 1, "F", micro_batch)]]
    if kind == "W":
        return [[(stage, "I", micro_batch)]]
    return [[(stage, "F", micro_batch)], [(stage + 1, "B", micro_batch), (stage + 1, "I", micro_batch)]]


def durations(scenario):
    """Return ``length[kind, stage]`` from the settings a person turned, as Fractions."""
    stages = scenario.devices * scenario.chunks
    factor = [Fraction(f) for f in scenario.stage_times or [1] * stages]
    slow = scenario.slow_stage if scenario.slow_stage is not None else (stages + 1) // 2
    factor[slow - 1] *= scenario.slow_factor
    plain = {"F": scenario.forward, "I": scenario.input_grad, "W": scenario.weight_grad}
    plain["B"] = plain["I"] + plain["W"]
    return {(kind, stage): time * factor[stage] for kind, time in plain.items() for stage in range(stages)}


def longest_paths(rows, length, latency):
    """Return ``start[device][i]``: the longest path to each place of each row."""
    home = {tuple(op): (device, i) for device, row in enumerate(rows) for i, cell in enumerate(row) for op in cell.ops}
    edges = defaultdict(dict)  # place -> {earlier place: hop}
    for device, row in enumerate(rows):
        for i, cell in enumerate(row):
            place = (device, i)
            edges[place] = {(device, i - 1): 0} if i else {}
            for op in cell.ops:
                for makers in sources(*op):
                    for maker in makers:
                        if maker in home:
                            edges[place][home[maker]] = latency if home[maker][0] != device else 0
    start = {}
    work = {
        (device, i): sum(length[op.kind, op.stage] for op in cell.ops)
        for device, row in enumerate(rows)
        for i, cell in enumerate(row)
    }
    for place in TopologicalSorter({place: list(before) for place, before in edges.items()}).static_order():
        start[place] = max((start[b] + work[b] + hop for b, hop in edges[place].items()), default=Fraction(0))
    return [[start[device, i] for i in range(len(row))] for device, row in enumerate(rows)]


def lower_bound(f, b, c, count):
    """No schedule of whole backwards with stage s on device s takes less: for each stage, reach it, work, leave it.

    ``f``, ``b``: time per stage, ``c``: hop, ``count``: micro-batches. With ``b`` all None: forward only.
    """
    stages = range(len(f))
    if b is None:
        return sum(f) + (len(f) - 1) * c + (count - 1) * max(f)
    bounds = []
    for s in stages:
        reach = sum(f[i] + c for i in range(s))
        leave = sum(b[i] + c for i in range(s))
        round_trip = sum(f[i] + b[i] for i in stages if i > s) + 2 * c * (len(f) - 1 - s)
        bounds += [
            reach + count * (f[s] + b[s]) + leave,
            reach + f[s] + round_trip + count * b[s] + leave,
            reach + count * f[s] + round_trip + b[s] + leave,
        ]
    return max(bounds)
