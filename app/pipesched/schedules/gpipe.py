"""GPipe: fill, turn round, drain."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, backwards, forwards, schedule


@schedule(
    family="synchronous",
    source="GPipe (Huang et al. 2018, arXiv 1811.06965), s2.2–2.3",
    since=2018,
    synonyms=("AFAB", "all-forward-all-backward", "fill-drain", "F-then-B", "ScheduleGPipe"),
)
def gpipe(scenario: Scenario) -> Rows:
    """All forwards, then all backwards; activations of all M micro-batches are kept in between.

    The backwards run in the order of the forwards, as torch.distributed.pipelining does; the paper's figure draws them
    reversed. The makespan is the same either way.
    """
    micro_batches = range(scenario.micro_batches)
    for stage in range(scenario.devices):
        yield forwards(stage, micro_batches) + backwards(stage, micro_batches)
