"""DualPipe: two directions whose forwards and backwards overlap in one block."""

from collections.abc import Iterator

from pipesched.model import Cell, Op, Pair
from pipesched.scenario import Scenario
from pipesched.schedules import Rows, require, schedule


@schedule(
    family="two_way",
    source="DeepSeek-V3 (2024, arXiv 2412.19437), s3.2.1, fig. 5 and table 2; deepseek-ai/DualPipe",
    since=2024,
    uses=("overlap",),
    synonyms=("bidirectional", "DeepSeek"),
)
def dualpipe(scenario: Scenario) -> Rows:
    """Half the micro-batches enter at either end; where a forward meets a backward, the two run as one block.

    Each device holds a stage of both directions: two weight copies. M is even and at least 2K, as in DeepSeek's code.
    """
    devices, half = scenario.devices, scenario.micro_batches // 2
    require(scenario, "devices", lambda count: count % 2 == 0, "needs.even_devices")
    require(scenario, "micro_batches", lambda count: count % 2 == 0 and count >= 2 * devices, "needs.dualpipe")
    for device in range(devices):
        near = min(device, devices - 1 - device)
        from_top = (device, 0), (devices - 1 - device, half)  # stage and first micro-batch of either direction
        yield eight_steps(from_top if device == near else from_top[::-1], devices // 2, near, half)


def eight_steps(ways: tuple[tuple[int, int], tuple[int, int]], depth: int, near: int, count: int) -> Iterator[Cell]:
    """Yield the row of a device that lies ``near`` stages from the end of a pipe ``depth`` devices deep.

    ``ways`` are the two streams of work that meet on it, each as its stage and its first micro-batch; each brings
    ``count`` micro-batches. The steps are those of DeepSeek's description, the numbers of the comments its own.
    """
    far, queue = depth - near - 1, []
    taken = {(kind, way): iter(range(first, first + count)) for kind in "FB" for way, (_, first) in enumerate(ways)}

    def op(kind: str, way: int) -> Op:
        return Op(ways[way][0], kind, next(taken["F" if kind == "F" else "B", way]))

    def split(way: int) -> Op:
        gradient = op("I", way)
        queue.append(gradient._replace(kind="W"))
        return gradient

    for _ in range(2 * far):  # 1: F0
        yield op("F", 0)
    for _ in range(near + 1):  # 2: F0 F1
        yield op("F", 0)
        yield op("F", 1)
    for _ in range(far):  # 3: I1 W1 F1
        yield split(1)
        yield queue.pop(0)
        yield op("F", 1)
    for i in range(count - 2 * depth + near + 1):  # 4: F0 with B1, F1 with B0
        if i == 0 and far == 0:  # in the middle of the pipe the first of these cannot overlap
            yield op("F", 0)
            yield op("B", 1)
        else:
            yield Pair(op("F", 0), op("B", 1))
        yield Pair(op("F", 1), op("B", 0))
    for _ in range(far):  # 5: B1, F1 with B0
        yield op("B", 1)
        yield Pair(op("F", 1), op("B", 0))
    for i in range(2 * (near + 1)):  # 6: B1 B0, from half-way on only their input gradients
        yield split(1 - i % 2) if i > near else op("B", 1 - i % 2)
    for _ in range(far):  # 7: W I0
        yield queue.pop(0)
        yield split(0)
    yield from queue  # 8: W
