"""Naive model parallelism: the layers are divided, the time is not."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, alternate, backwards, forwards, schedule


@schedule(
    family="synchronous",
    source="GPipe (Huang et al. 2018, arXiv 1811.06965), fig. 2b",
    synonyms=("naive", "model parallelism", "no pipelining"),
)
def sequential(scenario: Scenario) -> Rows:
    """One micro-batch at a time: its forward all the way, its backward all the way, then the next one enters."""
    micro_batches = range(scenario.micro_batches)
    for stage in range(scenario.devices):
        yield alternate(1, forwards(stage, micro_batches), backwards(stage, micro_batches))
