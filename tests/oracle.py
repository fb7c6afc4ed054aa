"""The order of each device goes in, exact starts come out: the longest path through a graph, found without the library.

Written from the papers a second time, on purpose: nothing here may import ``pipesched.rules`` or ``simulate``.
Edges run from an operation to those that wait for it: the next one on the device, the next stage (F), the previous
stage (gradients), the same stage (F before R, B or I; B or I before W and U), and in decoding from the last stage to
the first one of the next token. An edge is as long as its tail, plus a hop where it leaves the device; where sending
blocks, the edge to the next one on the device is longer too if any other edge leaves the device.
"""

import re
from collections import defaultdict
from fractions import Fraction
from graphlib import TopologicalSorter


def sources(stage, kind, micro_batch, stages=None, streams=0):
    """List the operations of which one, whichever exists, makes what this one needs; one list per value.

    In decoding (``streams`` not 0) the next token needs what the last of ``stages`` made.
    """
    activation, gradient = (stage, "F", micro_batch), [(stage, "B", micro_batch), (stage, "I", micro_batch)]
    if kind == "F" and stage == 0 and streams:
        return [[(stages - 1, "F", micro_batch - streams)]]
    if kind == "F":
        return [[(stage - 1, "F", micro_batch)]]
    if kind == "R":
        return [[activation]]
    if kind in "WU":
        return [gradient]
    return [[activation], [(stage + 1, "B", micro_batch), (stage + 1, "I", micro_batch)]]


def count_stages(rows):
    return 1 + max(op.stage for row in rows for cell in row for op in cell.ops)


def written_out(layout):
    """Expand a layout into one text per stage, by substitution as Megatron-LM does; a list of counts into t's."""
    if not re.search("[EtmL]", layout):
        counts = re.findall(r"\d+", layout)
        return ["E" * (i == 0) + "t" * int(n) + "L" * (i == len(counts) - 1) for i, n in enumerate(counts)]
    layout = re.sub(r"[,\s]", "", layout)
    for pattern in (r"\(([^()]+)\)\*(\d+)", r"(.)\*(\d+)"):
        layout = re.sub(pattern, lambda found: found[1] * int(found[2]), layout)
    return layout.split("|")


def held(scenario, stages):
    """Return, per stage, its work in layers and how many layers it has; None, None where nothing is split."""
    blocks = [scenario.layers // stages + (s < scenario.layers % stages) for s in range(stages)]
    ends = [Fraction(scenario.embedding)] + [Fraction(0)] * (stages - 1)
    ends[-1] += scenario.head
    if scenario.split == "balanced":
        blocks = [0] * stages
        for _ in range(scenario.layers):
            blocks[min(range(stages), key=lambda s: blocks[s] + ends[s])] += 1
    elif scenario.split == "hand":
        texts = written_out(scenario.layout)
        blocks = [text.count("t") + text.count("m") for text in texts]
        ends = [text.count("E") * scenario.embedding + text.count("L") * scenario.head for text in texts]
    return [n + end for n, end in zip(blocks, ends, strict=True)], blocks


def durations(scenario, rows):
    """Return ``length[kind, stage]`` from the settings a person turned, as Fractions."""
    stages = count_stages(rows)
    factor = [Fraction(f) for f in scenario.stage_times or [1] * stages]
    if scenario.times_of == "device" and not scenario.stage_times:
        factor = [Fraction(len(rows), stages)] * stages  # the durations are those of all chunks of a device
    reduced = list(factor)
    if scenario.split != "none":
        factor, reduced = held(scenario, stages)
    slow = scenario.slow_stage if scenario.slow_stage is not None else (stages + 1) // 2
    factor[slow - 1] *= scenario.slow_factor
    reduced[slow - 1] *= scenario.slow_factor
    samples, times = 1, 1
    if scenario.batch is not None and scenario.schedule != "order":
        samples = Fraction(scenario.batch, scenario.micro_batches)
        times = scenario.overhead + scenario.per_sample * samples
    t = scenario.tensor
    step = Fraction(scenario.all_reduce) * samples / t + scenario.all_reduce_latency
    ring = 2 * 2 * (t - 1) * step  # two all-reduces, each of 2(t - 1) steps
    plain = {"F": scenario.forward, "I": scenario.input_grad, "W": scenario.weight_grad, "U": scenario.update}
    length = {}
    for stage in range(stages):
        for kind, time in plain.items():
            length[kind, stage] = Fraction(time) * factor[stage] / t * (1 if kind == "U" else times)
            length[kind, stage] += ring * reduced[stage] if kind in "FI" else 0
        length["R", stage] = length["F", stage]
        length["I", stage] += length["F", stage] if scenario.recompute == "late" else 0
        length["B", stage] = length["I", stage] + length["W", stage]
    return length


def lasts(cell, scenario, length):
    """Return how long a cell takes: a pair as much shorter than its parts as a plain F and B are together."""
    share = Fraction(1)
    if len(cell.ops) > 1 and scenario.overlap is not None:
        share = Fraction(scenario.overlap) / (scenario.forward + scenario.input_grad + scenario.weight_grad)
    return share * sum(length[op.kind, op.stage] for op in cell.ops)


def longest_paths(scenario, rows, streams=0, late=None):
    """Return ``start[device][i]``: the longest path to each place of each row.

    ``late`` says of places, (device, i), how much longer than usual they take.
    """
    length, stages, latency = durations(scenario, rows), count_stages(rows), Fraction(scenario.comm)
    home = {tuple(op): (device, i) for device, row in enumerate(rows) for i, cell in enumerate(row) for op in cell.ops}
    work, edges, senders = {}, defaultdict(dict), set()  # edges: place -> {earlier place: hop}
    for device, row in enumerate(rows):
        for i, cell in enumerate(row):
            place = (device, i)
            work[place] = lasts(cell, scenario, length) + (late or {}).get(place, 0)
            for maker in {
                m for op in cell.ops for makers in sources(*op, stages, streams) for m in makers if m in home
            }:
                leaves = home[maker][0] != device
                edges[place][home[maker]] = latency if leaves else 0
                if leaves and scenario.send == "blocking":
                    senders.add(home[maker])
    for device, row in enumerate(rows):
        for i in range(1, len(row)):
            before = (device, i - 1)
            edges[device, i][before] = latency if before in senders else 0
    graph = {place: list(edges[place]) for place in work}
    start = {}
    for place in TopologicalSorter(graph).static_order():
        start[place] = max((start[b] + work[b] + hop for b, hop in edges[place].items()), default=Fraction(0))
    return [[start[device, i] for i in range(len(row))] for device, row in enumerate(rows)]


def lower_bound(f, b, c, count):
    """No schedule of whole backwards with stage s on device s takes less: for each stage, reach it, work, leave it.

    ``f``, ``b``: time per stage, ``c``: hop, ``count``: micro-batches. With ``b`` None: forward only.
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


def split_lower_bound(f, i, w, c, count):
    """The same where the backward is split (W may come at any time after I): reach the stage, and work.

    Zero Bubble (arXiv 2401.10241): for equal stages (K - 1) f + M (f + i + w), with c = 0.
    """
    return max(sum(f[:s]) + s * c + count * (f[s] + i[s] + w[s]) for s in range(len(f)))
