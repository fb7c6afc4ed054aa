"""PipeDream: no flush, each backward changes the weights, so each forward stashes its own."""

from pipesched.model import Cell
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, alternate, backwards, forwards, schedule


@schedule(
    family="asynchronous",
    source="PipeDream (Harlap et al. 2018, arXiv 1806.03377; SOSP 2019), s3.2–3.3",
    since=2018,
    synonyms=("1F1B without flush", "weight stashing", "async"),
)
def pipedream(scenario: Scenario) -> Rows:
    """1F1B that never drains: the weights of a stage change after each of its backwards.

    A backward uses the weights its forward used, so device k stashes K-k versions. The pipe fills once; only the first
    M micro-batches of the endless run are shown, so the drain at their end is the picture's, not the schedule's.
    """
    return updating(scenario, every=1)


def updating(scenario: Scenario, every: int) -> Rows:
    """Yield the rows of 1F1B with a weight update after each ``every`` backwards."""
    micro_batches = range(scenario.micro_batches)
    for stage in range(scenario.devices):
        row: list[Cell] = []
        plain = alternate(scenario.devices - stage, forwards(stage, micro_batches), backwards(stage, micro_batches))
        for cell in plain:
            row.append(cell)
            op = cell.ops[0]
            if op.kind == "B" and (op.micro_batch + 1) % every == 0:
                row.append(op._replace(kind="U"))
        yield row
