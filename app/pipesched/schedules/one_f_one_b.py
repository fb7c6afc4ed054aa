"""1F1B: one forward, one backward, so that few activations wait."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, backwards, forwards, schedule


@schedule(
    family="synchronous",
    source="Megatron-LM (Narayanan et al. 2021, arXiv 2104.04473), s2.2.1; PipeDream-Flush (arXiv 2006.09503), s3.2",
    since=2020,
    unused=("chunks",),
)
def _1f1b(scenario: Scenario) -> Rows:
    """Warm up with K-1-k forwards on device k, then alternate one forward and one backward, then drain.

    Same makespan as GPipe for equal stages and no latency, but device k keeps at most min(M, K-k) activations.
    With M < K the warm-up is cut to M.
    """
    count = scenario.micro_batches
    for stage in range(scenario.devices):
        warm_up = min(count, scenario.devices - 1 - stage)
        row = forwards(stage, range(warm_up))
        for micro_batch in range(count - warm_up):
            row += forwards(stage, [micro_batch + warm_up]) + backwards(stage, [micro_batch])
        yield row + backwards(stage, range(count - warm_up, count))
