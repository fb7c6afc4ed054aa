"""Sentences about moments, blocks, gaps and queues agree with the timeline and can be said in every language."""

from bisect import bisect_right

import pytest
from hypothesis import given, settings

from oracle import sources
from pipesched import Message, Op, run
from pipesched.explain import block, moment, name, standing, why_idle
from pipesched.model import Pair
from pipesched.notes import notes
from pipesched.run import read
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


def called(timeline, cell):
    """How a cell of this timeline is named: in decoding a micro-batch is a token of a stream."""
    return name(cell, timeline.schedule.streams)


@given(scenarios())
def test_a_waiting_device_is_told_what_ends_its_wait_and_how_far_that_is(scenario):
    """The maker of a value runs, has not begun, or is done and its result travels; or the device itself still sends."""
    timeline = run(scenario).timeline
    time, latency = timeline.costs.time, timeline.costs.latency
    for device in range(timeline.schedule.devices):
        for gap in timeline.gaps(device):
            if gap.before is None:
                assert why_idle(timeline, gap).key == "gap.done"
                continue
            cause = timeline.bound_by[device][gap.before]
            home, i = timeline.position[cause.ops[0]]
            why = why_idle(timeline, gap)
            assert why.key == ("gap.sends" if home == device else "gap.waits_hop" if latency else "gap.waits")
            assert why.params["end"] == time(timeline.ends[home][i] + latency)
            for tick in moments(timeline):
                if gap.start <= tick < gap.end:
                    message = moment(timeline, device, tick).message
                    began, ended = tick >= timeline.starts[home][i], tick >= timeline.ends[home][i]
                    key = "sends" if home == device else "travelling" if ended else "running" if began else "later"
                    assert message.key == f"moment.{key}"
                    assert message.params["op"] == called(timeline, cause)
                    assert message.params["op_end"] == time(timeline.ends[home][i])


@given(scenarios())
def test_a_block_is_told_what_fixed_its_start(scenario):
    timeline = run(scenario).timeline
    for device, row in enumerate(timeline.schedule.rows):
        for i, cell in enumerate(row):
            message, cause = block(timeline, device, i), timeline.bound_by[device][i]
            assert message.params["op"] == called(timeline, cell)
            reason = message.params["reason"]
            if cause is None:
                assert reason.key == "bound.nothing" and timeline.starts[device][i] == 0
                continue
            home, place = timeline.position[cause.ops[0]]
            waited = timeline.starts[device][i] > timeline.ends[home][place]
            assert reason.params["op"] == called(timeline, cause)
            if home == device:
                assert reason.key == ("bound.sent" if waited else "bound.device")
            else:
                assert reason.key == ("bound.hop" if timeline.costs.latency else "bound.value")


def every_message(result):
    """What the core can say of a result."""
    timeline = result.timeline
    for device in range(timeline.schedule.devices):
        yield from (block(timeline, device, i) for i in range(len(timeline.starts[device])))
        yield from (why_idle(timeline, gap) for gap in timeline.gaps(device))
        yield from (moment(timeline, device, tick).message for tick in moments(timeline))
    yield from result.theory.textbook
    yield from (note.message for note in notes(result.scenario, timeline, result.metrics))


def check_said(message):
    for language in LANGUAGES:
        text = sentence(message, language)
        assert text
        assert "{" not in text
    assert str(message) == sentence(message, "en")


@settings(max_examples=25)
@given(scenarios())
def test_everything_can_be_said_in_every_language(scenario):
    for message in every_message(run(scenario)):
        check_said(message)


@given(scenarios())
def test_a_note_that_offers_settings_offers_some_that_run(scenario):
    result = run(scenario)
    for note in notes(scenario, result.timeline, result.metrics):
        check_said(note.message)
        if note.settings:
            _, errors = read({**scenario.settings(), **note.settings})
            assert all(error.field == "group" for error in errors)  # a group may deadlock, which is worth seeing


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"micro_batches": 8}, []),
        ({"micro_batches": 9}, ["chosen", "torch_refuses", "cut", "filled"]),
        ({"micro_batches": 10}, ["shared", "cut", "filled"]),
        ({"micro_batches": 10, "group": 10}, ["torch", "cut", "filled"]),  # not the smallest that Megatron accepts
        ({"micro_batches": 10, "group": 4}, ["refused", "torch", "filled"]),
        ({"micro_batches": 8, "group": 3, "schedule": "looped_dfs"}, ["small"]),
        ({"micro_batches": 4, "group": 2, "schedule": "looped_dfs"}, ["small"]),
        ({"micro_batches": 3}, ["few"]),
        ({"micro_batches": 3, "group": 1, "schedule": "looped_dfs"}, ["small"]),  # three groups and not one
    ],
)
def test_notes_on_groups_say_what_was_done_and_who_refuses_it(settings, keys):
    result = run(**{"schedule": "interleaved_1f1b", "devices": 4, **settings})
    found = [note.message.key for note in notes(result.scenario, result.timeline, result.metrics)]
    assert [key.removeprefix("note.group.") for key in found if key.startswith("note.group.")] == keys


@given(scenarios(["1f1b"]))
def test_what_1f1b_is_told_of_gpipe_is_so(scenario):
    result, gpipe = run(scenario), run(scenario, schedule="gpipe")
    for note in notes(scenario, result.timeline, result.metrics):
        if note.message.key.startswith("note.vs_gpipe"):
            same = gpipe.metrics.makespan == result.metrics.makespan
            saves = max(result.metrics.peak_activations) < max(gpipe.metrics.peak_activations)
            key = "other" if not same else "same" if saves else "equal"
            assert note.message.key == f"note.vs_gpipe.{key}"
            assert note.message.params["gpipe"] == gpipe.metrics.makespan
            assert note.message.params["peak"] == max(result.metrics.peak_activations)
            assert note.message.params["n"] == max(gpipe.metrics.peak_activations)


@given(scenarios())
def test_a_queue_holds_what_has_arrived_and_not_started(scenario):
    """Counted anew: a forward waits from the end of its maker (plus a hop) to its own start; inputs from time 0."""
    result = run(scenario)
    timeline, schedule = result.timeline, result.timeline.schedule
    for stage, waits in enumerate(result.queues["forward"]):
        spans = {}
        for j in range(schedule.micro_batches):
            device, i = timeline.position[stage, "F", j]
            arrived = [arrival(timeline, device, maker) for maker in makers(schedule, stage, "F", j)]
            spans[j] = max(arrived, default=0), timeline.starts[device][i]
        longest = 0
        for tick in moments(timeline):
            expected = {j for j, (arrived, start) in spans.items() if arrived <= tick < start}
            assert set(standing(waits, tick)) == expected
            longest = max(longest, len(expected))
        assert result.metrics.peak_queue[stage] >= longest
        assert result.metrics.peak_queue[stage] == max(len(standing(waits, arrived)) for arrived, _, _ in waits)


def makers(schedule, *op):
    """List the operations that may make what ``op`` needs."""
    return [maker for value in sources(*op, schedule.stages, schedule.streams) for maker in value]


def arrival(timeline, device, maker):
    """When what ``maker`` makes is on ``device``; 0 if there is no such operation."""
    if maker not in timeline.position:
        return 0
    home, i = timeline.position[maker]
    return timeline.ends[home][i] + timeline.costs.latency * (home != device)


@given(scenarios())
def test_a_backward_waits_only_once_its_forward_and_the_gradient_are_there(scenario):
    result = run(scenario)
    timeline = result.timeline
    for stage, waits in enumerate(result.queues["backward"]):
        for arrived, started, j in waits:
            op = next((stage, kind, j) for kind in "BI" if (stage, kind, j) in timeline.position)
            device, i = timeline.position[op]
            assert started == timeline.starts[device][i]
            assert arrived == max(arrival(timeline, device, maker) for maker in makers(timeline.schedule, *op))


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


def test_where_sending_blocks_the_device_is_said_to_send():
    timeline = run(devices=2, micro_batches=2, comm=2, send="blocking").timeline
    assert (
        sentence(moment(timeline, 0, 1).message, "en")
        == "sends the result of forward of micro-batch 1 on stage 1 until 3"
    )
    gap = next(timeline.gaps(0))
    text = "Device 1 is held up from 1 to 3: it sends the result of forward of micro-batch 1 on stage 1."
    assert sentence(why_idle(timeline, gap), "en") == text


def test_a_token_waits_for_the_one_before_it():
    timeline = run(schedule="decode", devices=2, micro_batches=1, tokens=2).timeline
    text = "waits for token 1 of stream 1 on stage 2, which runs on device 2 until 2"
    assert sentence(moment(timeline, 0, 1).message, "en") == text


CIRCLE = {"schedule": "order", "order": "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n"}


def test_a_device_that_waits_for_ever_says_for_what():
    result, _ = read(CIRCLE)
    timeline = result.timeline
    assert [sentence(moment(timeline, device, 2).message, "en") for device in (0, 1)] == [
        "waits for ever for backward of micro-batch 1 on stage 2, before backward of micro-batch 1 on stage 1",
        "waits for ever for forward of micro-batch 2 on stage 1, before forward of micro-batch 2 on stage 2",
    ]
    (gap,) = timeline.gaps(0)
    assert sentence(why_idle(timeline, gap), "en") == (
        "Device 1 waits for ever: its next operation, backward of micro-batch 1 on stage 1, needs "
        "backward of micro-batch 1 on stage 2, which never comes."
    )


@pytest.mark.parametrize("order", [CIRCLE["order"], "0B0 0F0", "0W0 0F0 0I0", "0F0 0B0\n1F0 1B0\n3F0 2F0 2B0 3B0"])
def test_of_a_deadlock_everything_can_be_said_and_drawn(order):
    result, errors = read({**CIRCLE, "order": order})
    assert not errors
    for device, link in result.timeline.stuck.items():
        here = moment(result.timeline, device, result.timeline.end)
        assert (here.state, here.cell) == ("waits", link.cell)
    check_said(result.deadlock.message)
    for message in every_message(result):
        check_said(message)
    assert result.text() and result.svg(width=400)
