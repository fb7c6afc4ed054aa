"""Sentences about moments, blocks, gaps and queues agree with the timeline and can be said in every language."""

from bisect import bisect_right

import pytest
from hypothesis import given

from pipesched import Message, run
from pipesched.explain import block, moment, name, standing, why_idle
from pipesched.model import Op, Pair
from pipesched.words import LANGUAGES, sentence
from scenarios import scenarios


def moments(timeline):
    """All ticks at which something starts or ends."""
    return sorted({tick for columns in (*timeline.starts, *timeline.ends) for tick in columns})


@given(scenarios())
def test_a_device_works_waits_or_is_done_as_its_blocks_say(scenario):
    timeline = run(scenario).timeline
    for device, row in enumerate(timeline.schedule.rows):
        starts, ends = timeline.starts[device], timeline.ends[device]
        for tick in moments(timeline):
            here = moment(timeline, device, tick)
            running = [cell for cell, start, end in zip(row, starts, ends, strict=True) if start <= tick < end]
            if running:
                assert (here.state, here.cell) == ("works", running[0])
            elif tick >= ends[-1]:
                assert (here.state, here.cell) == ("done", None)
            else:
                assert (here.state, here.cell) == ("waits", row[bisect_right(starts, tick)])


@given(scenarios())
def test_a_waiting_device_is_told_what_ends_its_wait_and_how_far_that_is(scenario):
    timeline = run(scenario).timeline
    time = timeline.costs.time
    for device in range(scenario.devices):
        for gap in timeline.gaps(device):
            if gap.before is None:
                continue
            cause = timeline.bound_by[device][gap.before]
            home, i = timeline.position[cause.ops[0]]
            for tick in moments(timeline):
                if gap.start <= tick < gap.end:
                    message = moment(timeline, device, tick).message
                    began, ended = tick >= timeline.starts[home][i], tick >= timeline.ends[home][i]
                    key = "moment.travelling" if ended else "moment.running" if began else "moment.later"
                    assert message.key == key
                    assert message.params["op"] == name(cause)
                    assert message.params["op_end"] == time(timeline.ends[home][i])
            assert why_idle(timeline, gap).params["end"] == time(timeline.ends[home][i] + timeline.costs.latency)


def every_message(result):
    """What the core can say of a result."""
    timeline = result.timeline
    for device, row in enumerate(timeline.schedule.rows):
        yield from (block(timeline, device, i) for i in range(len(row)))
        yield from (why_idle(timeline, gap) for gap in timeline.gaps(device))
        yield from (moment(timeline, device, tick).message for tick in moments(timeline))
    yield from result.theory.textbook


@given(scenarios())
def test_everything_can_be_said_in_every_language(scenario):
    for message in every_message(run(scenario)):
        for language in LANGUAGES:
            text = sentence(message, language)
            assert text
            assert "{" not in text


@given(scenarios())
def test_a_message_shows_itself_in_english(scenario):
    assert all(str(message) == sentence(message, "en") for message in every_message(run(scenario)))


@given(scenarios())
def test_a_queue_holds_what_has_arrived_and_not_started(scenario):
    """Counted anew: forward s waits from the end of forward s-1 (plus a hop) to its own start; inputs from time 0."""
    result = run(scenario)
    timeline = result.timeline
    latency = scenario.comm * timeline.costs.ticks_per_unit
    spans = {op: (timeline.starts[d][i], timeline.ends[d][i], d) for op, (d, i) in timeline.position.items()}
    for stage, waits in enumerate(result.queues["forward"]):
        longest = 0
        for tick in moments(timeline):
            expected = set()
            for j in range(scenario.micro_batches):
                start, _, device = spans[stage, "F", j]
                arrived = 0
                if stage:
                    _, end, home = spans[stage - 1, "F", j]
                    arrived = end + latency * (home != device)
                if arrived <= tick < start:
                    expected.add(j)
            assert set(standing(waits, tick)) == expected
            longest = max(longest, len(expected))
        assert result.metrics.peak_queue[stage] >= longest
        arrivals = {arrived for arrived, _, _ in waits}
        assert result.metrics.peak_queue[stage] == max(len(standing(waits, tick)) for tick in arrivals)


@given(scenarios())
def test_a_backward_waits_only_once_its_forward_and_the_gradient_are_there(scenario):
    result = run(scenario)
    timeline = result.timeline
    latency = scenario.comm * timeline.costs.ticks_per_unit
    for stage, waits in enumerate(result.queues["backward"]):
        for arrived, started, j in waits:
            own = [op for op in timeline.position if (op.stage, op.micro_batch) == (stage, j)]
            device, i = timeline.position[next(op for op in own if op.kind in "BI")]
            assert started == timeline.starts[device][i]
            arrivals = [timeline.ends[d][k] for op in own if op.kind == "F" for d, k in [timeline.position[op]]]
            for op, (home, k) in timeline.position.items():
                if (op.stage, op.micro_batch) == (stage + 1, j) and op.kind in "BI":
                    arrivals.append(timeline.ends[home][k] + latency * (home != device))
            assert arrived == max(arrivals)


@pytest.mark.parametrize(
    ("tick", "texts"),
    [
        (
            0,
            [
                "runs forward of micro-batch 1 on stage 1",
                "waits for forward of micro-batch 1 on stage 1, which runs on device 1 until 1",
                "waits for forward of micro-batch 1 on stage 2, which has not started: device 2 begins it at 1",
            ],
        ),
        (
            4,
            [
                "done since 4",
                "runs forward of micro-batch 4 on stage 2",
                "runs forward of micro-batch 3 on stage 3",
            ],
        ),
        (6, ["done: the last operation of all ended at 6"] * 3),
    ],
)
def test_the_first_view_is_explained_in_these_words(tick, texts):
    timeline = run().timeline
    assert [sentence(moment(timeline, device, tick).message, "en") for device in range(3)] == texts


def test_a_result_under_way_is_said_to_travel():
    timeline = run(devices=2, micro_batches=1, comm=2).timeline
    text = sentence(moment(timeline, 1, 2).message, "en")
    assert text == "waits for the result of forward of micro-batch 1 on stage 1, on its way from device 1 until 3"


def test_overlapped_pairs_have_a_name():
    pair = name(Pair(Op(1, "F", 1), Op(0, "B", 0)))
    text = "forward of micro-batch 2 on stage 2 together with backward of micro-batch 1 on stage 1"
    assert sentence(Message("moment.works", {"op": pair}), "en") == f"runs {text}"
