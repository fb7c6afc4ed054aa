"""An order as text or CSV reads back as itself; what is no order, or not a whole one, is refused with its place."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesched.model import Op, Pair, ScenarioError, Schedule
from pipesched.notation import check, parse, write, write_csv
from pipesched.schedules import arrange
from scenarios import scenarios

DATA = Path(__file__).parent / "data" / "torch_orders.jsonl"
TORCH = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
TRANSFERS = ["0SEND_F0", "1RECV_F0", "1SEND_B0", "0RECV_B0", "0UNSHARD", "0RESHARD", "1REDUCE_GRAD", "1reduce_grad2"]


def refusal(text):
    """Return the key and the params of the error that ``text`` meets, without its field."""
    with pytest.raises(ScenarioError) as caught:
        parse(text)
    assert caught.value.field == "order"
    params = dict(caught.value.message.params)
    assert params.pop("field") == "order"
    return caught.value.message.key, params


def placed(text):
    """Return the key, line, column and text of an error that has a place."""
    key, params = refusal(text)
    return key, params["line"], params["column"], params["given"]


@st.composite
def complete_schedules(draw):
    """Whole orders and nothing more: any placement, any sequence, idle devices, pairs, R and U now and then."""
    stages, micro_batches, devices = (draw(st.integers(1, 4)) for _ in range(3))
    backward = draw(st.sampled_from([[""], ["B"], ["IW"], ["B", "IW", "BR", "IWR"]]))
    rows = [[] for _ in range(devices)]
    for stage in range(stages):
        for micro_batch in range(micro_batches):
            row = rows[draw(st.integers(0, devices - 1))]
            row += [Op(stage, kind, micro_batch) for kind in "F" + draw(st.sampled_from(backward))]
    rows[0] += [Op(stage, "U", 0) for stage in range(stages) if backward != [""] and draw(st.booleans())]
    return Schedule(tuple(tuple(paired(draw, draw(st.permutations(row)))) for row in rows))


def paired(draw, row):
    """Yield the operations of ``row``, some neighbours as one block."""
    rest = list(row)
    while rest:
        first = rest.pop(0)
        yield Pair(first, rest.pop(0)) if rest and draw(st.booleans()) else first


@given(complete_schedules())
def test_what_is_written_reads_back_the_same(schedule):
    assert parse(write(schedule)) == (schedule, 0)
    assert parse(write_csv(schedule)) == (schedule, 0)


@given(scenarios())
def test_the_order_of_every_filed_schedule_reads_back_the_same(scenario):
    schedule = arrange(scenario)
    assert parse(write(schedule)).schedule.rows == parse(write_csv(schedule)).schedule.rows == schedule.rows


def test_the_orders_of_pytorch_are_read_and_written_to_the_letter():
    for row in TORCH:
        schedule, left_out = parse("\n".join(row["orders"]))
        assert write(schedule).split("\n") == row["orders"]
        assert write_csv(schedule).split("\n") == [order.replace(" ", ",") for order in row["orders"]] + [""]
        assert left_out == 0
        assert (schedule.devices, schedule.micro_batches) == (row["devices"], row["micro_batches"])
        assert schedule.stages == row["devices"] * row["chunks"]


def test_text_and_csv_with_its_bubbles_are_told_apart_without_being_asked():
    expected = Schedule(((Op(0, "F", 0), Op(0, "B", 0)), (Op(1, "F", 0), Op(1, "B", 0))))
    for text in (
        "0F0 0B0\n1F0 1B0",
        "0F0,,,0B0\r\n,1F0,1B0,\r\n",
        "0F0, , , 0B0\n, 1F0, 1B0",
        '"0F0","0B0"\n"1F0","1B0"',
    ):
        assert parse(text).schedule == expected


def test_semicolons_of_an_overlapped_pair_do_not_separate_cells():
    expected = Pair(Op(1, "F", 0), Op(0, "B", 0))
    for pair in ("(1F0;0B0)OVERLAP_F_B", "( 1F0; 0B0 )OVERLAP_F_B", "(1f0;0b0)overlap_f_b"):
        assert parse(f"0F0 {pair} 1B0").schedule.rows[0][1] == expected
        assert parse(f"0F0,{pair},1B0").schedule.rows[0][1] == expected


def test_lower_case_labels_comments_blank_lines_and_a_byte_order_mark_change_nothing():
    expected = parse("0F0 0F1\n1F0 1F1\n2F0 2F1")
    assert parse("\ufeff# by hand\n\nRank 0: 0f0\t0f1\n \n  # the rest\ndevice1 :1F0 1F1\n2:2F0 2F1\n") == expected


def test_recomputation_and_weight_updates_are_operations_of_their_own():
    row = (Op(0, "F", 0), Op(0, "R", 0), Op(0, "B", 0), Op(0, "U", 0))
    assert parse("0F0 0R0 0B0 0U0").schedule == Schedule((row,))


def test_a_device_that_runs_nothing_keeps_its_line():
    schedule = Schedule(((), (Op(0, "F", 0),), ()))
    assert write(schedule) == "0:\n0F0\n2:"
    assert parse("Rank 0:\n0F0\nRank 2:").schedule == parse(",,\n0F0,\n,,").schedule == schedule


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_transfers_and_sharding_are_left_out_and_counted(transfer):
    bare = parse("0F0 0B0\n1F0 1B0").schedule
    assert parse(f"0F0 {transfer} 0B0\n{transfer} 1F0 1B0") == (bare, 2)
    assert parse(f"0F0,{transfer},,0B0\n1F0,1B0") == (bare, 1)


@pytest.mark.parametrize(
    ("text", "line", "column", "given"),
    [
        ("0F0 0X0", 1, 5, "0X0"),
        ("0F0\n# note\n\n  1F0  oops 1F1", 4, 8, "oops"),
        ("0F0,,F1", 1, 6, "F1"),
        ("0F0;0F1", 1, 1, "0F0;0F1"),
        ("0F", 1, 1, "0F"),
        ("0F-1", 1, 1, "0F-1"),
        ("0F1.5", 1, 1, "0F1.5"),
        ("٠F٠", 1, 1, "٠F٠"),
        ("Rank 0 : 0F0\nRank 1 1F0", 2, 1, "Rank"),
        ("0F0 (1F1;0B0)", 1, 5, "(1F1;0B0)"),
        ("0F0 (1F1;0B0", 1, 5, "(1F1;0B0"),
        ("0F0 (1F1; 0Z0)OVERLAP_F_B", 1, 11, "0Z0"),
        ("x" * 99, 1, 1, "x" * 39 + "…"),
    ],
)
def test_what_is_no_operation_is_named_with_line_and_column(text, line, column, given):
    assert placed(text) == ("notation.unknown", line, column, given)


@pytest.mark.parametrize(
    "pair", ["(1F1)OVERLAP_F_B", "()OVERLAP_F_B", "(0F0;1F1;2F0)OVERLAP_F_B", "(1F1;0SEND_B0)OVERLAP_F_B"]
)
def test_an_overlapped_block_is_two_operations(pair):
    assert placed(f"0F0 {pair}") == ("notation.pair", 1, 5, pair)


@pytest.mark.parametrize(
    ("text", "key", "column", "given", "high"),
    [
        ("0F0 4096F0", "notation.stage", 5, "4096F0", 4095),
        ("0F65536", "notation.micro_batch", 1, "0F65536", 65535),
        ("0F0,(0F1;0B65536)OVERLAP_F_B", "notation.micro_batch", 10, "0B65536", 65535),
        ("9" * 5000 + "F0", "notation.stage", 1, "9" * 39 + "…", 4095),
        ("0F" + "9" * 5000, "notation.micro_batch", 1, "0F" + "9" * 37 + "…", 65535),
    ],
)
def test_a_number_beyond_the_limit_is_named(text, key, column, given, high):
    assert refusal(text) == (key, {"line": 1, "column": column, "given": given, "high": high})


@pytest.mark.parametrize(
    ("text", "line", "given", "wanted"),
    [("Rank 1: 0F0", 1, "1", "0"), ("0: 0F0\n\n0: 1F0", 3, "0", "1"), ("0F0\nDevice 2: 1F0", 2, "2", "1")],
)
def test_labels_of_lines_count_from_zero_without_a_gap(text, line, given, wanted):
    assert refusal(text) == ("notation.label", {"line": line, "given": given, "wanted": wanted})


@pytest.mark.parametrize("text", ["", " \n\t\n", "# only a note", "Rank 0:", ",,,\n,,,", '""', "0SEND_F0 1UNSHARD"])
def test_an_order_without_an_operation_is_refused(text):
    assert refusal(text) == ("notation.empty", {})


def test_an_operation_twice_is_named_with_its_device_or_devices():
    assert refusal("0F0 0F0") == ("notation.twice", {"op": "0F0", "device": 0, "home": 0})
    assert refusal("1F0\n0F0\n0F1 1F0") == ("notation.twice_apart", {"op": "1F0", "device": 0, "home": 2})
    assert refusal("0F0 (0B0;0B0)OVERLAP_F_B") == ("notation.twice", {"op": "0B0", "device": 0, "home": 0})


@pytest.mark.parametrize(("parts", "other"), [("0I0 0W0", "0I0"), ("0I0", "0I0"), ("0W0", "0W0")])
def test_a_backward_is_whole_or_in_parts(parts, other):
    assert refusal(f"0F0 0B0 {parts}") == ("notation.whole_and_part", {"op": "0B0", "other": other})


def test_input_and_weight_gradient_come_together():
    assert refusal("0F0 0F1 0I0 0I1 0W0") == ("notation.half", {"op": "0I1", "other": "0W1"})
    assert refusal("0F0 0W0") == ("notation.half", {"op": "0W0", "other": "0I0"})


def test_stages_may_differ_in_whole_and_split_backwards():
    assert parse("0F0 0F1 0B0 0I1 0W1\n1F0 1F1 1I0 1B1 1W0").schedule.micro_batches == 2


@pytest.mark.parametrize(
    ("text", "ops", "n"),
    [
        ("0F0 0F1 0B0", ["0B1"], 1),
        ("0F0 0F1 0I0 0W0", ["0I1", "0W1"], 2),
        ("0F0 0B0 0F1 0I1 0W1 0F2", ["0B2"], 1),
        ("0B0", ["0F0"], 1),
        ("0F0 0R0", ["0B0"], 1),
        ("0F0 0U0", ["0B0"], 1),
        ("0F0 0F1\n1F0", ["1F1"], 1),
        ("0F1", ["0F0"], 1),
        ("0F0 0F2\n1F2", ["0F1", "1F0", "1F1"], 3),
        ("0F0 0B0\n2F0 2B0", ["1F0", "1B0"], 2),
        ("0F0 0F3\n1F2 1F3", ["0F1", "0F2", "1F0", "…"], 4),
        ("4095F65535", ["0F0", "0F1", "0F2", "…"], 4096 * 65536 - 1),
    ],
)
def test_missing_operations_are_named_up_to_three_and_counted(text, ops, n):
    assert refusal(text) == ("notation.missing", {"ops": ops, "n": n})


def test_forwards_alone_are_an_order():
    assert parse("0F0 0F1\n1F0 1F1").schedule.devices == 2


def test_the_misnumbered_1f1b_of_pytorch_is_refused_for_the_forward_that_its_last_rank_lacks():
    """Schedule1F1B.get_pipeline_order() of torch 2.13.0 numbers the last rank's forwards 1 to 8 where 0 to 7 run."""
    (row,) = (row for row in TORCH if (row["schedule"], row["devices"], row["micro_batches"]) == ("1f1b", 4, 8))
    *orders, last = row["orders"]
    assert last.startswith("3F0 3B0") and last.endswith("3F7 3B7")
    wrong = " ".join(f"3F{int(op[2:]) + 1}" if op[1] == "F" else op for op in last.split())
    assert wrong.startswith("3F1 3B0") and wrong.endswith("3F8 3B7")
    key, params = refusal("\n".join([*orders, wrong]))
    assert key == "notation.missing"
    assert params == {"ops": ["3F0", "3B8", "0F8", "…"], "n": 2 + 2 * 3}


def test_a_deadlock_is_not_for_the_notation_to_find():
    assert parse("0B0 0F0").schedule.rows == ((Op(0, "B", 0), Op(0, "F", 0)),)


def test_check_judges_a_schedule_made_elsewhere_too():
    check(Schedule(((Op(0, "F", 0),), ())))
    for rows in ((), ((),), ((Op(1, "F", 0),),)):
        with pytest.raises(ScenarioError):
            check(Schedule(rows))


def test_two_hundred_thousand_operations_are_read_and_one_more_is_refused():
    order = "\n".join(" ".join(f"{stage}F{j}" for j in range(50_000)) for stage in range(4))
    assert parse(order.replace(" ", ",,,")).schedule.micro_batches == 50_000
    assert refusal(order + " 4F0") == ("notation.too_long", {"high": 200_000})


def test_more_devices_than_stages_can_be_numbered_are_refused():
    assert refusal(",\n" * 4097) == ("notation.devices", {"high": 4096})


@pytest.mark.parametrize("junk", ["( ", "(", "(0F0;", ") ", ",", '"', "\n", "0", "#\n", "0:", "(x x ", "0SEND_F0 "])
def test_a_megabyte_of_junk_is_refused_at_once(junk):
    assert refusal(junk * (1_000_000 // len(junk)))[0].startswith("notation.")


LIKELY = st.text(alphabet="0019FBIWRUfx();, \t\n\r\"':#_-\ufeff\u2028é", max_size=60)
PIECES = st.lists(
    st.sampled_from([*TRANSFERS, "0F0", "1F0", "0B0", "1I0", "1W0", "(0F0;1B0)OVERLAP_F_B", "(", ")", ";", ",", " "])
    | st.sampled_from(["\n", "Rank 0:", "1:", "#", "OVERLAP_F_B"]),
    max_size=30,
).map("".join)


@given(st.text() | LIKELY | PIECES)
def test_any_text_is_an_order_that_reads_back_the_same_or_a_scenario_error(text):
    try:
        schedule = parse(text).schedule
    except ScenarioError:
        return
    assert parse(write(schedule)).schedule == parse(write_csv(schedule)).schedule == schedule
