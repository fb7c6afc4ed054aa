"""Naive model parallelism: the layers are divided, the time is not."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, backwards, forwards, schedule


@schedule(
    family="synchronous",
    source="GPipe (Huang et al. 2018, arXiv 1811.06965), fig. 2b",
    unused=("chunks",),
)
def sequential(scenario: Scenario) -> Rows:
    """One micro-batch at a time: its forward all the way, its backward all the way, then the next one enters."""
    for stage in range(scenario.devices):
        row = []
        for micro_batch in range(scenario.micro_batches):
            row += forwards(stage, [micro_batch]) + backwards(stage, [micro_batch])
        yield row
