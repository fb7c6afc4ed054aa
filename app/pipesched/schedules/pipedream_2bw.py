"""PipeDream-2BW: no flush, and two versions of the weights are enough."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, require, schedule
from pipesched.schedules.pipedream import updating


@schedule(
    family="asynchronous",
    source="PipeDream-2BW (Narayanan et al. 2021, arXiv 2006.09503), s3.1",
    since=2020,
    uses=("group",),
    couples=lambda scenario: {"update_every": scenario.group or scenario.devices},
    synonyms=("2BW", "double-buffered weight updates"),
)
def pipedream_2bw(scenario: Scenario) -> Rows:
    """1F1B that never drains, with an update only every g micro-batches (g = K unless set; at least K).

    Micro-batch j (from 0) computes with version max(j // g - 1, 0), one behind the newest, so that two versions do. A
    step is W(t+1) = W(t) - rate * gradient at W(t-1).
    """
    require(scenario, "group", lambda size: size >= scenario.devices, "needs.group_of_devices")
    return updating(scenario, every=scenario.group or scenario.devices)
