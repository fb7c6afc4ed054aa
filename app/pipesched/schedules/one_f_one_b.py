"""1F1B: one forward, one backward, so that few activations wait."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, alternate, backwards, forwards, schedule


@schedule(
    family="synchronous",
    source="Megatron-LM (Narayanan et al. 2021, arXiv 2104.04473), s2.2.1; PipeDream-Flush (arXiv 2006.09503), s3.2",
    since=2020,
    synonyms=("PipeDream-Flush", "DAPPLE", "Schedule1F1B", "TrainSchedule", "non-interleaved"),
)
def _1f1b(scenario: Scenario) -> Rows:
    """Device k runs K-k forwards at first, then alternates one backward and one forward, then drains.

    Same makespan as GPipe for equal stages and no latency, but device k keeps at most min(M, K-k) activations.
    With M < K the warm-up is cut to M; torch.distributed.pipelining refuses that case.
    """
    micro_batches = range(scenario.micro_batches)
    for stage in range(scenario.devices):
        yield alternate(scenario.devices - stage, forwards(stage, micro_batches), backwards(stage, micro_batches))
