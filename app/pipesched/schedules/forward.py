"""Inference: forwards only."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, forwards, schedule


@schedule(
    family="inference",
    source="GPipe (Huang et al. 2018, arXiv 1811.06965), fig. 2",
    synonyms=("inference", "forward pass", "InferenceSchedule"),
)
def forward(scenario: Scenario) -> Rows:
    """Every stage runs the forwards in order: each micro-batch moves on as soon as the next stage is free."""
    for stage in range(scenario.devices):
        yield forwards(stage, range(scenario.micro_batches))
