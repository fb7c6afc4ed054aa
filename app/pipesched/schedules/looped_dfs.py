"""Depth-first pipeline with a flush in the middle: interleaved stages, all forwards before all backwards."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, schedule
from pipesched.schedules.interleaved_1f1b import group_size, looped


@schedule(
    family="interleaved",
    source="Megatron-LM (Narayanan et al. 2021, arXiv 2104.04473), s2.2.2, the all-forward, all-backward version",
    since=2021,
    uses=("chunks", "times_of", "group"),
    synonyms=("depth-first", "DFS", "all-forward-all-backward interleaved"),
)
def looped_dfs(scenario: Scenario) -> Rows:
    """Stages as in interleaved 1F1B; groups of g micro-batches through chunk after chunk, all forwards first.

    Same makespan and same M v activations as breadth-first without latency. What Lamy-Poirier's paper calls
    depth-first alternates forwards and backwards: that is interleaved 1F1B.
    """
    size = group_size(scenario)
    for device in range(scenario.devices):
        yield looped(scenario, device, "F", size) + looped(scenario, device, "B", size)
