"""Interleaved zero bubble: interleaved 1F1B and ZB-H1 in one."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, alternate, schedule
from pipesched.schedules.interleaved_1f1b import group_size, looped
from pipesched.schedules.zb_h1 import delayed


@schedule(
    family="zero_bubble",
    source="torch.distributed.pipelining, ScheduleInterleavedZeroBubble (PyTorch 2.5, 2024)",
    since=2024,
    uses=("chunks", "times_of", "group"),
    synonyms=("ScheduleInterleavedZeroBubble", "ZB interleaved"),
)
def interleaved_zb(scenario: Scenario) -> Rows:
    """Interleaved 1F1B with the backward split and W put off as in ZB-H1.

    Device k runs (K-1-k) + (v-1)g chunk forwards at first, fewer than interleaved 1F1B. With v = 1 it is ZB-H1, but for
    M < K, where PyTorch keeps putting W off. The order is that of torch.distributed.pipelining, op for op.
    """
    devices, size = scenario.devices, group_size(scenario)
    total = scenario.micro_batches * scenario.chunks
    for device in range(devices):
        ahead = devices - 1 - device + (scenario.chunks - 1) * size
        row = alternate(ahead + 1, looped(scenario, device, "F", size), looped(scenario, device, "I", size))
        yield delayed(row, delay=device, drain=total)
