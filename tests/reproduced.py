"""Published numbers and orders go in, how many of them we reproduce comes out: the table of the README.

The data, and what each row claims, are here once; test_published.py and test_schedules.py test the claims one by one.
"""

import json
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path

from pipesched import Scenario, run
from pipesched.metrics import peak_memory
from pipesched.notation import write
from pipesched.schedules import REGISTRY, arrange

DATA = Path(__file__).parent / "data"
ROWS, TORCH = (
    [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]
    for name in ("published.jsonl", "torch_orders.jsonl")
)

# Names of the reference rows and what they are here; fields of Scenario that the name implies.
NAMES = {
    "forward_only": ("forward", {}),
    "gpipe_remat_early": ("gpipe", {"recompute": "early"}),
    "looped_dfs_all_f_all_b": ("looped_dfs", {}),
    "vmin_no_reorder": ("v_min", {}),
    "vhalf_no_reorder": ("v_half", {}),
    "chimera_direct_concat": ("chimera", {}),
    "dualpipev": ("dualpipe_v", {}),
    "decode_streams": ("decode", {}),
    "zb_1p_auto": ("zb_auto", {}),
    "zb_2p_auto": ("zb_auto", {}),
    "wave_greedy (Hanayo-like, NOT verified against paper)": ("wave", {}),
}

# Zero Bubble (ICLR 2024), table 5, bubble rates, with the profiled times of its table 6; v is (layers + 2) / p.
COLUMNS = ("1F1B", "1F1B-I", "ZB-H1", "ZB-H2", "ZB-1p", "ZB-2p")
TABLE_5 = [  # p, m, v, TF, TB, TW, Tcomm and a rate per column
    (8, 24, 3, "18.522", "18.086", "9.337", "0.601", (0.2431, 0.1055, 0.1585, 0.1083, 0.1585, 0.0433)),
    (8, 32, 3, "18.513", "18.086", "9.331", "0.626", (0.1985, 0.0818, 0.1242, 0.0837, 0.1242, 0.0039)),
    (8, 64, 3, "18.546", "18.097", "9.321", "0.762", (0.1240, 0.0443, 0.0674, 0.0444, 0.0674, 0.0026)),
    (8, 24, 4, "29.718", "29.444", "19.927", "0.527", (0.2347, 0.0808, 0.1323, 0.0698, 0.1323, 0.0029)),
    (8, 32, 4, "29.802", "29.428", "19.530", "0.577", (0.1898, 0.0628, 0.1045, 0.0559, 0.1045, 0.0022)),
    (8, 64, 4, "29.935", "29.621", "19.388", "0.535", (0.1091, 0.0320, 0.0554, 0.0294, 0.0554, 0.0010)),
    (16, 48, 3, "11.347", "11.248", "8.132", "0.377", (0.2552, 0.1104, 0.1397, 0.0672, 0.1397, 0.0066)),
    (16, 64, 3, "11.307", "11.254", "8.101", "0.379", (0.2082, 0.0852, 0.1088, 0.0516, 0.1088, 0.0054)),
    (16, 128, 3, "11.325", "11.308", "8.109", "0.378", (0.1251, 0.0445, 0.0576, 0.0266, 0.0576, 0.0028)),
    (32, 96, 2, "10.419", "10.207", "7.715", "0.408", (0.2646, 0.1493, 0.1421, 0.0641, 0.1421, 0.0038)),
    (32, 128, 2, "10.408", "10.204", "7.703", "0.408", (0.2168, 0.1164, 0.1106, 0.0490, 0.1106, 0.0029)),
    (32, 256, 2, "10.402", "10.248", "7.698", "0.460", (0.1352, 0.0624, 0.0594, 0.0257, 0.0594, 0.0018)),
]


def ours(row):
    """Return the settings that a reference row means; its times are those of a stage (of a chunk, where there are)."""
    schedule, implied = NAMES.get(row["schedule"], (row["schedule"], {}))
    settings = {
        "schedule": schedule,
        "devices": row["K"],
        "micro_batches": row["M"],
        "forward": row["t_f"],
        "input_grad": row["t_b"],
        "weight_grad": row["t_w"],
        "comm": row["t_comm"],
        "times_of": "stage",
        **implied,
    }
    if schedule in ("interleaved_1f1b", "looped_bfs", "looped_dfs", "wave"):
        settings["chunks"] = row["v"]
    if row["schedule"] == "zb_2p_auto":
        settings["memory_limit"] = 2 * row["K"]
    for theirs, field in (("tokens", "tokens"), ("t_fb_overlapped", "overlap")):
        if theirs in row:
            settings[field] = row[theirs]
    return settings


def of_table_5(row):
    """Tell the rows that repeat table 5: they carry the rate that the paper prints."""
    return "published_bubble_rate" in row and row["source"].startswith("ZB paper")


@cache
def claims(i):
    """Return (what, ours, theirs) for each number of the reference row ``i``."""
    row, result = ROWS[i], run(**ours(ROWS[i]))
    metrics, found = result.metrics, []
    if row["makespan"] is not None:
        found.append(("makespans", metrics.makespan, row["makespan"]))
        share = round(metrics.bubble_fraction_of_total, 6)
        found.append(("bubbles", share, row["bubble_fraction_of_total"]))
    if "max_device_span" in row:
        found.append(("spans", metrics.longest_span, row["max_device_span"]))
        # The paper's rate is of devices that are equally busy; the rows take the busiest where they are not.
        rate = metrics.bubble_rate_of_span
        if len(set(metrics.busy)) > 1:
            rate = 1 - max(metrics.busy) / metrics.longest_span
        found.append(("spans", round(rate, 6), row["bubble_rate_of_span"]))
    if row["peak_activations_per_device"] is not None:
        found.append(("peaks", list(metrics.peak_activations), row["peak_activations_per_device"]))
    if "published_bubble_rate" in row:
        found.append(("rate", round(metrics.bubble_rate_of_span, 4), row["published_bubble_rate"]))
    if "idle_per_device" in row:
        found.append(("idle times", [metrics.makespan - busy for busy in metrics.busy], row["idle_per_device"]))
    if "weight_copies" in row:
        found.append(("weight copies", set(metrics.weight_versions), {row["weight_copies"]}))
    if "peak_microbatches_published" in row:
        found.append(("peaks", max(metrics.peak_micro_batches), row["peak_microbatches_published"]))
    if "peak_mw_half" in row:
        half = [peak_memory(cells, Fraction(1, 2)) for cells in result.timeline.schedule.rows]
        found.append(("peaks with W at a half", half, row["peak_mw_half"]))
    return found


def table_5_settings(column, row):
    """Return our settings for a column of table 5."""
    p, m, v, f, b, w, comm, _ = row
    times = {"forward": f, "input_grad": b, "weight_grad": w, "comm": comm}
    schedule = {"1F1B": "1f1b", "1F1B-I": "interleaved_1f1b", "ZB-H1": "zb_h1", "ZB-H2": "zb_h2"}.get(column, "zb_auto")
    return {
        "schedule": schedule,
        "devices": p,
        "micro_batches": m,
        "chunks": v,
        "memory_limit": 2 * p if column == "ZB-2p" else None,
        **times,
    }


@cache
def table_5_rate(column, row):
    """Return the bubble rate that we give for a row, to the paper's four decimals."""
    return round(run(**table_5_settings(column, row)).metrics.bubble_rate_of_span, 4)


def table_5_interleaved(row):
    """Return the cost and the rate of 1F1B-I by the formula that gives the paper's values, and what p hops take."""
    p, m, v, *times, _ = row
    f, b, w, comm = map(Fraction, times)
    cost = (m + Fraction(p - 1, v)) * (f + b + w) + (2 * p * v - p - 2) * comm
    return cost, round(float(1 - m * (f + b + w) / cost), 4), p * comm


def makespan(settings):
    """Return our makespan exactly."""
    timeline = run(**settings).timeline
    return Fraction(timeline.end, timeline.costs.ticks_per_unit)


def torch_settings(row):
    """Return our settings for an order of PyTorch's."""
    return {
        "schedule": row["schedule"],
        "devices": row["devices"],
        "micro_batches": row["micro_batches"],
        "chunks": row["chunks"],
    }


@cache
def torch_agrees(i):
    return write(arrange(Scenario(**torch_settings(TORCH[i])))).split("\n") == TORCH[i]["orders"]


# Whose order the numbers of the reference rows are of. Except for table 5 the rows were computed by a simulator that
# was written independently of this one, and held against the closed forms of the papers where they have one.
ORIGIN = {
    "sequential": "GPipe (arXiv 1811.06965), fig. 2b",
    "forward_only": "GPipe, fig. 2; Alpa and DeepSpeed, InferenceSchedule",
    "gpipe": "GPipe s2.2–2.3; Megatron-LM (arXiv 2104.04473) s2.2.1",
    "gpipe_remat_early": "GPipe s2.3, recomputation",
    "1f1b": "Megatron-LM s2.2.1",
    "eager_1f1b": "Alpa (arXiv 2211.05322), OverlapFriendlyPipeDreamSchedule",
    "interleaved_1f1b": "Megatron-LM s2.2.2 and its schedules.py",
    "looped_bfs": "Breadth-first pipeline parallelism (arXiv 2211.05953)",
    "looped_dfs_all_f_all_b": "Megatron-LM s2.2.2, all forwards before all backwards",
    "zb_h1": "Zero Bubble (arXiv 2401.10241) s2, table 2",
    "zb_h2": "Zero Bubble s2, table 2",
    "zb_v": "Zero Bubble (arXiv 2401.10241v1) s6",
    "vmin_no_reorder": "Controllable memory (arXiv 2405.15362), not re-ordered",
    "vhalf_no_reorder": "Controllable memory, not re-ordered",
    "chimera_direct_concat": "Chimera (arXiv 2107.06925), units joined directly",
    "dualpipe": "DeepSeek-V3 (arXiv 2412.19437), table 2; deepseek-ai/DualPipe",
    "dualpipev": "deepseek-ai/DualPipe, DualPipeV",
    "wave_greedy (Hanayo-like, NOT verified against paper)": "our greedy, not Hanayo's order",
    "decode_streams": "our closed form",
}


def named(schedule, implied):
    return f"`{schedule}`" + "".join(f", {field} {value}" for field, value in implied.items())


def share(agree, cases):
    return f"all {cases}" if agree == cases else f"{agree} of {cases}"


def simulated_rows():
    """Yield a table row for each group of reference rows: what they say, and in how many cases all of it agrees."""
    for theirs, origin in ORIGIN.items():
        found = [claims(i) for i, row in enumerate(ROWS) if row["schedule"] == theirs and not of_table_5(row)]
        agree = sum(all(a == b for _, a, b in claimed) for claimed in found)
        whats = ", ".join(dict.fromkeys(what for claimed in found for what, *_ in claimed))
        name = named(*NAMES.get(theirs, (theirs, {})))
        yield name, f"an independent simulator: {origin}", len(found), f"{whats}: {share(agree, len(found))}"


def table_5_rows():
    """Yield a table row per column of table 5."""
    cases = len(TABLE_5)
    for place, column in enumerate(COLUMNS):
        settings = table_5_settings(column, TABLE_5[0])
        name = named(settings["schedule"], {"memory limit": "2K"} if settings["memory_limit"] else {})
        agree = share(sum(table_5_rate(column, row) == row[-1][place] for row in TABLE_5), cases)
        text = f"rates to 4 decimals: {agree}"
        if column == "1F1B-I":
            formulas = [(row, *table_5_interleaved(row)) for row in TABLE_5]
            agree = share(sum(rate == row[-1][place] for row, _, rate, _ in formulas), cases)
            more = share(
                sum(makespan(table_5_settings(column, row)) == cost + hops for row, cost, _, hops in formulas), cases
            )
            text = f"{text}; by (m + (p − 1)/v)(F+B+W) + (2pv − p − 2)c: {agree}; the order takes p·c more: {more}"
        yield name, f"Zero Bubble (ICLR 2024), table 5, {column}", cases, text


def torch_rows():
    """Yield a table row per schedule whose orders we have from PyTorch."""
    cases, agree = Counter(), Counter()
    for i, row in enumerate(TORCH):
        key = f"`{row['schedule']}`", f"torch 2.13.0, {row['torch_class']}"
        cases[key] += 1
        agree[key] += torch_agrees(i)
    yield from ((*key, cases[key], f"orders, op for op: {share(agree[key], cases[key])}") for key in cases)


def table():
    """Return the table as Markdown; every count is of comparisons made just now."""
    order = {f"`{name}`": place for place, name in enumerate(REGISTRY)}
    rows = sorted([*simulated_rows(), *table_5_rows(), *torch_rows()], key=lambda row: order[row[0].split(",")[0]])
    head = ["| schedule | source of the numbers | cases | agreement |", "|---|---|--:|---|"]
    return "\n".join([*head, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])
