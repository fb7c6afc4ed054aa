"""Breadth-first pipeline: all micro-batches through a chunk before the next chunk begins."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, backwards, forwards, schedule


@schedule(
    family="interleaved",
    source="Breadth-first pipeline parallelism (Lamy-Poirier 2022, arXiv 2211.05953); torch ScheduleLoopedBFS",
    since=2022,
    uses=("chunks", "times_of"),
    synonyms=("breadth-first", "BFS", "ScheduleLoopedBFS", "AFAB interleaved"),
)
def looped_bfs(scenario: Scenario) -> Rows:
    """Stages as in interleaved 1F1B; all M forwards of chunk after chunk, then all backwards from the last chunk.

    A device works on one chunk for long, which leaves time to fetch and reduce its weights. The micro-batches of a
    chunk's backward run in reverse order, as in torch.distributed.pipelining.
    """
    micro_batches = range(scenario.micro_batches)
    for device in range(scenario.devices):
        stages = range(device, scenario.devices * scenario.chunks, scenario.devices)
        row = [cell for stage in stages for cell in forwards(stage, micro_batches)]
        yield row + [cell for stage in reversed(stages) for cell in backwards(stage, reversed(micro_batches))]
