"""The rewards of this export, by the names that trainers look for; `vgbench_scorer` beside it needs numpy alone.

TRL: `reward_funcs=[reward]`. verl: `compute_score`. EasyR1: `compute_score_batch`. ms-swift: `vgbench`, once this file
is among its `--external_plugins`. verifiers: `reward_trace`.
"""

import sys
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parent)
if FOLDER not in sys.path:
    sys.path.insert(0, FOLDER)
from vgbench_scorer.rewards.adapters import (  # noqa: E402
    compute_score,
    compute_score_batch,
    format_reward,
    register_orms,
    reward,
    reward_trace,
)
from vgbench_scorer.rewards.grading import Reward, grade_reply  # noqa: E402

__all__ = [
    "Reward",
    "compute_score",
    "compute_score_batch",
    "format_reward",
    "grade_reply",
    "register_orms",
    "reward",
    "reward_trace",
]

REWARD_NAME, REWARD_TYPE = "vgbench", "batch"  # read by EasyR1
if "swift" in sys.modules:
    register_orms()
