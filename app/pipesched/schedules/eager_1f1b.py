"""Eager 1F1B: twice the warm-up, so that a hop has time to arrive."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, alternate, backwards, forwards, schedule


@schedule(
    family="synchronous",
    source="Alpa (Zhuang et al. 2022, arXiv 2211.05322), OverlapFriendlyPipeDreamSchedule",
    since=2022,
    synonyms=("1f1b_overlap_friendly", "overlap-friendly"),
)
def eager_1f1b(scenario: Scenario) -> Rows:
    """1F1B with 2(K-k)-1 forwards at first on device k: a transfer may take half a step without delaying anyone.

    Device k keeps min(M, 2(K-k)-1) activations, nearly twice those of 1F1B.
    """
    micro_batches = range(scenario.micro_batches)
    for stage in range(scenario.devices):
        ahead = 2 * (scenario.devices - stage) - 1
        yield alternate(ahead, forwards(stage, micro_batches), backwards(stage, micro_batches))
