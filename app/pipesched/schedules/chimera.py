"""Chimera: two pipelines in opposite directions over the same devices."""

from pipesched.model import Op
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, require, schedule


@schedule(
    family="two_way",
    source="Chimera (Li and Hoefler 2021, arXiv 2107.06925), s3.1–3.2; units joined directly",
    since=2021,
    synonyms=("bidirectional",),
)
def chimera(scenario: Scenario) -> Rows:
    """Even micro-batches go down, odd ones up, K to a unit; each device holds a stage of both, so two weight copies.

    Counted in slots of one forward, F of the j-th micro-batch of a direction runs on its stage s in slot 2Ku + s + 2j
    of unit u and B in slot 2Ku + 2K-1-s + 2j. The two directions never want the same slot: they differ in parity.
    """
    devices = scenario.devices
    require(scenario, "devices", lambda count: count % 2 == 0, "needs.even_devices")
    for device in range(devices):
        slots: dict[int, Op] = {}
        for micro_batch in range(scenario.micro_batches):
            unit, place = divmod(micro_batch, devices)
            stage = device if micro_batch % 2 == 0 else devices - 1 - device
            enters = 2 * devices * unit + 2 * (place // 2)
            slots[enters + stage] = Op(stage, "F", micro_batch)
            slots[enters + 2 * devices - 1 - stage] = Op(stage, "B", micro_batch)
        yield [slots[slot] for slot in sorted(slots)]
