"""Speed as a share of the GPU's peak: what calculators do, and the best that a table of such shares can do."""

from collections.abc import Sequence
from statistics import median

from peers.peer import TimePeer
from scrimp.calibrate.time.rows import TimeRow


def dense_flops(row: TimeRow) -> float:
    """6 N a token: forward 2, backward 4, whatever is frozen."""
    return 6 * float(row.row["matmul_params_b"]) * 1e9


def model_flops(row: TimeRow) -> float:
    """6 N, or 4 N when the base is frozen (no gradient of its weights), and three passes of causal attention."""
    length = float(row.row["seq_len"] or 2048)
    attention = 3 * 2 * float(row.row["n_layers"]) * float(row.row["attn_dim"]) * length
    return dense_flops(row) * (1 if row.row["method"] == "full" else 4 / 6) + attention


def hardware_flops(row: TimeRow) -> float:
    """What is really computed, recomputed forward passes too, as the table has counted it."""
    return float(row.row["hw_flops_per_token"])


def at_share(flops: float, row: TimeRow, share: float) -> float:
    """Tokens a second of one GPU that reaches `share` of its peak."""
    return share * row.chip.peak_flops / flops


def reached_share(row: TimeRow) -> float:
    """The share of peak that a measured run reached, recomputation counted."""
    return row.tokens_per_s_per_gpu * hardware_flops(row) / row.chip.peak_flops


def at_usual_share(row: TimeRow, rows: Sequence[TimeRow]) -> float | None:
    """At the median share of the same class, stack and method, taken from groups other than the row's own.

    With fewer than three such rows: of the same class and stack, then of the same class, then of all.
    """
    others = [other for other in rows if other.group != row.group]
    for columns in (("gpu_class", "precision", "stack", "method"), ("gpu_class", "stack"), ("gpu_class",), ()):
        alike = [o for o in others if all(o.row[name] == row.row[name] for name in columns)]
        if len(alike) >= 3:
            return at_share(hardware_flops(row), row, median(map(reached_share, alike)))
    return None


_CALCULATORS = "Kaplan et al. 2020 (6 N a token) with the shares of peak that calculators assume"
TIME = (
    TimePeer(
        name="6 N at 35% of peak",
        source=f"{_CALCULATORS}; ftuneai 0.4.1 takes 30 to 35%",
        tokens_per_s=lambda row, rows: at_share(dense_flops(row), row, 0.35),
    ),
    TimePeer(
        name="6 N at 40% of peak",
        source=_CALCULATORS,
        tokens_per_s=lambda row, rows: at_share(dense_flops(row), row, 0.40),
    ),
    TimePeer(
        name="4 N or 6 N and attention at 35%",
        source=f"{_CALCULATORS}; 4 N when the base is frozen",
        tokens_per_s=lambda row, rows: at_share(model_flops(row), row, 0.35),
    ),
    TimePeer(
        name="median share of its class",
        source="the other groups of calibration/measured_time.csv",
        tokens_per_s=at_usual_share,
    ),
)
