"""ZB-H2: more forwards at the start, so that each device works without a pause."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, schedule
from pipesched.schedules.zb_h1 import split_1f1b


@schedule(
    family="zero_bubble",
    source="Zero Bubble (Qi et al. 2024, arXiv 2401.10241), s2.3, fig. 3 bottom",
    since=2023,
    synonyms=("zero bubble", "handcrafted 2"),
)
def zb_h2(scenario: Scenario) -> Rows:
    """2(K-1-k)+1 forwards at first on device k, W delayed by 2k: no device pauses between its first and last op.

    The devices start and end one after another, a parallelogram: the gain shows in the longest span of a device, not in
    the makespan, and is real where the next step begins without a barrier. Memory nearly doubles.
    """
    for stage in range(scenario.devices):
        yield split_1f1b(scenario, stage, ahead=2 * (scenario.devices - 1 - stage), delay=2 * stage)
