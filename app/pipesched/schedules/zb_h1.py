"""ZB-H1: the weight gradients wait until the device would idle."""

from pipesched.model import Cell
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, alternate, backwards, forwards, schedule


@schedule(
    family="zero_bubble",
    source="Zero Bubble (Qi et al. 2024, arXiv 2401.10241), s2.3, fig. 3 top",
    since=2023,
    synonyms=("ZB1P", "ZB-1p", "zero bubble", "handcrafted 1"),
)
def zb_h1(scenario: Scenario) -> Rows:
    """1F1B with the backward split: W of micro-batch j-k follows I of micro-batch j on device k, the rest fill the end.

    Memory as in 1F1B, a third of its bubble where F, I and W take equally long.
    """
    for stage in range(scenario.devices):
        yield split_1f1b(scenario, stage, ahead=scenario.devices - 1 - stage, delay=stage)


def split_1f1b(scenario: Scenario, stage: int, ahead: int, delay: int) -> list[Cell]:
    """Return 1F1B on input gradients, each W ``delay`` of them late, with ``ahead`` forwards before the first pair."""
    micro_batches, drain = range(scenario.micro_batches), max(0, scenario.micro_batches - ahead)
    gradients = backwards(stage, micro_batches, "I")
    return delayed(alternate(ahead + 1, forwards(stage, micro_batches), gradients), delay, drain)


def delayed(row: list[Cell], delay: int, drain: int) -> list[Cell]:
    """Return ``row`` with the weight gradients put in: as soon as more than ``delay`` are pending, else at the end.

    From the input gradient number ``drain`` on, when no forward is left between them, one follows each of them.
    """
    new: list[Cell] = []
    pending: list[Cell] = []
    done = 0
    for cell in row:
        new.append(cell)
        (op,) = cell.ops
        if op.kind == "I":
            pending.append(op._replace(kind="W"))
            if len(pending) - done > delay or len(pending) > drain:
                new.append(pending[done])
                done += 1
    return new + pending[done:]
