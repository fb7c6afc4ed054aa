"""DualPipeV: DualPipe cut in half, so that one copy of the weights is enough."""

from pipesched.scenario import Scenario
from pipesched.schedules import Rows, require, schedule
from pipesched.schedules.dualpipe import eight_steps


@schedule(
    family="two_way",
    source="DualPipeV (deepseek-ai/DualPipe, 2025), after Sea AI Lab's “cut in half”; torch ScheduleDualPipeV",
    since=2025,
    uses=("overlap", "times_of"),
    synonyms=("cut in half", "ScheduleDualPipeV", "DeepSeek"),
)
def dualpipe_v(scenario: Scenario) -> Rows:
    """DualPipe's order on K devices, the two chunks of a V in place of the two directions.

    Device k holds stages k and 2K-1-k. M is at least 2K. The order is that of torch.distributed.pipelining, op for op.
    """
    devices = scenario.devices
    require(scenario, "micro_batches", lambda count: count >= 2 * devices, "needs.twice_devices")
    for device in range(devices):
        yield eight_steps(((device, 0), (2 * devices - 1 - device, 0)), devices, device, scenario.micro_batches)
