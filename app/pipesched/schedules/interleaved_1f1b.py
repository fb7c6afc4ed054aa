"""Interleaved 1F1B: each device holds several thin stages, so that the pipe fills in thin steps."""

from collections.abc import Iterator

from pipesched.model import Cell, Op
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, alternate, schedule


@schedule(
    family="interleaved",
    source="Megatron-LM (Narayanan et al. 2021, arXiv 2104.04473), s2.2.2; Megatron-LM schedules.py",
    since=2021,
    uses=("chunks", "times_of", "group"),
    synonyms=("VPP", "virtual pipeline", "looped", "depth-first", "circular", "ScheduleInterleaved1F1B", "1F1B-I"),
)
def interleaved_1f1b(scenario: Scenario) -> Rows:
    """Device k holds stages k, K+k, 2K+k, …; groups of g micro-batches run through chunk after chunk, as in 1F1B.

    Device k runs 2(K-1-k) + (v-1)g chunk forwards, then alternates a forward and a backward. The order is that of
    Megatron-LM, and of torch.distributed.pipelining, op for op, wherever these accept K, M and v. With v = 1 the
    order is that of eager 1F1B.
    """
    devices, chunks = scenario.devices, scenario.chunks
    size = group_size(scenario)
    for device in range(devices):
        ahead = 2 * (devices - 1 - device) + (chunks - 1) * size + 1
        yield alternate(ahead, looped(scenario, device, "F", size), looped(scenario, device, "B", size))


def group_size(scenario: Scenario) -> int:
    """Return g: the one asked for, else the smallest that Megatron-LM accepts.

    It accepts g from K to M that leave no rest of M, or a rest of at least K. Where K divides M this is K; where
    PyTorch accepts M (a multiple of max(1, M // K) rounds), it is PyTorch's M / rounds; below K micro-batches it is M.

    >>> [group_size(Scenario(schedule="interleaved_1f1b", devices=4, micro_batches=M)) for M in (3, 8, 10, 18)]
    [3, 4, 5, 6]
    """
    count, devices = scenario.micro_batches, scenario.devices
    if scenario.group is not None:
        return min(scenario.group, count)
    return next((g for g in range(devices, count) if accepted(g, count, devices)), count)


def accepted(size: int, count: int, devices: int) -> bool:
    """Say whether Megatron-LM runs groups of ``size``: no rest of ``count`` micro-batches, or one of at least K."""
    return devices <= size <= count and (count % size == 0 or count % size >= devices)


def looped(scenario: Scenario, device: int, kind: str, size: int) -> list[Cell]:
    """Return all of ``kind`` that ``device`` runs, group by group, chunk by chunk; backwards from the last chunk."""
    return [
        Op((chunk if kind == "F" else scenario.chunks - 1 - chunk) * scenario.devices + device, kind, micro_batch)
        for chunk, micro_batch in _table(scenario.micro_batches, scenario.chunks, size)
    ]


def _table(count: int, chunks: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield (chunk, micro-batch) in the order of Megatron-LM's schedule table."""
    for start in range(0, count, size):
        for chunk in range(chunks):
            for micro_batch in range(start, min(start + size, count)):
                yield chunk, micro_batch
