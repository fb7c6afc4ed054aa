"""ZB-V: two chunks in the shape of a V, zero bubble with the memory of 1F1B."""

from pipesched.model import Cell, Op
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, schedule


@schedule(
    family="zero_bubble",
    source="Zero Bubble (Qi et al. 2023, arXiv 2401.10241v1), s6, fig. 8; torch ScheduleZBVZeroBubble",
    since=2023,
    uses=("times_of",),
    synonyms=("ZBV", "V schedule", "V-ZB", "ScheduleZBVZeroBubble", "zero bubble"),
)
def zb_v(scenario: Scenario) -> Rows:
    """Device k holds stages k and 2K-1-k: the way back of a forward ends where it began, and its backward begins there.

    With equal F, I and W and M >= 2K-1 no device pauses between its first and last op; K activations of both chunks
    together on every device. The order is that of torch.distributed.pipelining, op for op.
    """
    for device in range(scenario.devices):
        yield _row(scenario.devices, scenario.micro_batches, device)


def _row(devices: int, count: int, device: int) -> list[Cell]:
    """Return the row of one device: warm-up, chunk 1 alone, both chunks in turn, and the W's put off at the end.

    It is laid out for at least 2K-1 micro-batches; those that are not there drop out, as in torch.
    """
    whole = max(count, 2 * devices - 1)
    stages = (device, 2 * devices - 1 - device)
    taken = {(kind, chunk): 0 for kind in "FIW" for chunk in (0, 1)}
    row: list[Cell] = []

    def add(kinds: str, chunk: int) -> None:
        for kind in kinds:
            if taken[kind, chunk] < count:
                row.append(Op(stages[chunk], kind, taken[kind, chunk]))
            taken[kind, chunk] += 1

    for _ in range(2 * (devices - device) - 1):
        add("F", 0)
    for _ in range(device):
        add("F", 1)
        add("F", 0)
    for _ in range(devices - device):
        add("FIW", 1)
    while taken["F", 1] < taken["F", 0] or taken["F", 0] < whole:
        add("FIW" if taken["F", 0] < whole else "IW", 0)
        add("FIW", 1)
    for _ in range(device):
        add("I", 0)
        add("I", 1)
    for _ in range(devices - device):
        add("IW", 0)
    for chunk in (1, 0):
        add("W" * (taken["I", chunk] - taken["W", chunk]), chunk)
    return row
