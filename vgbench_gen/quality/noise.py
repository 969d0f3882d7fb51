"""The noise test (`docs/validity.md#noise-test`): does the best option stay best when the ground truth is a little off?

Composing refuses what does not, verification asks again from the row alone; both get the same share, because the draws
depend on the question's group and form and on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, Fact, FloatArray, Item, QuestionType
from vgbench_gen.tasks.base import Task
from vgbench_gen.tasks.row_evidence import NoiseRecord, RowEvidence

LEAD_MAX = 1e6  # where noise hardly moves the answer, such as a homography that was applied


def measure_noise(
    fact: Fact,
    group_id: str,
    form: QuestionType,
    task: Task,
    options: Sequence[Candidate] = (),
    truth: int = 0,
    claims: tuple[FloatArray, FloatArray] | None = None,
) -> NoiseRecord:
    """Share of `task.gates.noise.draws` perturbations that leave the question its answer, and by how much it leads.

    Multi-choice: every option is taken for the true one in turn, where it could have been asked about and its evidence
    allows, and the worst share counts. Were the truth alone tested, sets would stay where the truth happens to bear
    noise well, and whoever knows which values do (large distances, near depths) would know where truths are rare. The
    rungs of a ladder are tested by their values for the same reason.
    Judgment: the perturbed truth must be nearer to the true claim than to the false one; by the tolerance that their
    text states, the true one must stay true and the false one false. Where a claim alone tells how well it bears noise,
    the false one is also taken for the true one.
    Open-ended: the perturbed truth must stay within the tolerance by which answers are scored.
    The lead is that of the right answer over the next one, or over the tolerance.

    Args:
        fact: as asked.
        group_id, form: of the question.
        task: under the gates of the build.
        options, truth: of a multi-choice question, in any order, and the place of the truth among them.
        claims: of a judgment, (true, false) as printed.
    """
    gates = task.gates.noise
    noise, rng = gates.of(fact.dataset), rng_for(0, "noise", group_id, form)
    if form == "open-ended":
        values = task.noisy_values(fact, fact.truth_candidate, noise, rng, gates.draws)[:, 0]
        answer = float(fact.truth_candidate.value[0])
        with np.errstate(invalid="ignore", divide="ignore"):
            within = [np.log(1 + task.tolerance(form)) - np.abs(np.log(values / answer))]
        return _sum_up(within, within)
    truths: list[FloatArray] = []
    # Letters are given after the test; the draws must not know them.
    order = sorted(range(len(options)), key=lambda k: (options[k].key, options[k].value.ravel().tolist()))
    options, truth = [options[k] for k in order], order.index(truth) if order else 0
    if claims is not None:
        true, false = claims
        asked = replace(fact.truth_candidate, value=true)
        options, truth = (asked, Candidate("", false)), 0
        values = task.noisy_values(fact, asked, noise, rng, gates.draws)
        for claim, holds in ((true, True), (false, False)):
            errors = task.claim_errors(values, claim, fact)
            if errors is not None:
                truths.append(1 - errors if holds else errors - 1)
    leads = {
        k: measure_leads(task.noisy_gaps(fact, options, k, noise, rng, gates.draws), k)
        for k in task.could_be_true(fact, options, truth)
    }
    return _sum_up([*truths, *leads.values()], [*truths, leads[truth]])


def measure_leads(gaps: FloatArray, truth: int) -> FloatArray:
    """(n,) by how much row `truth` of gaps (m, n) is smaller than all others; NaN where it is NaN itself."""
    others = np.where(np.isnan(gaps), np.inf, gaps)
    others[truth] = np.inf
    return np.asarray(others.min(axis=0) - gaps[truth])


def _sum_up(tested: Sequence[FloatArray], asked: Sequence[FloatArray]) -> NoiseRecord:
    """The least share and the least lead of some leads (n,); those that count for the lead alone are of the truth."""
    kept = min(float((leads > 0).mean()) for leads in tested)
    return NoiseRecord(kept=kept, draws=len(tested[0]), lead=min(_measure_lead(leads) for leads in asked))


def _measure_lead(leads: FloatArray) -> float:
    """Median over half the width of the middle 68 %, which is one standard deviation where they are normal."""
    finite = np.nan_to_num(leads, nan=-LEAD_MAX, posinf=LEAD_MAX, neginf=-LEAD_MAX)
    low, middle, high = np.quantile(finite, [0.16, 0.5, 0.84])
    return float(np.clip(middle / max((high - low) / 2, 1e-12), 0.0, LEAD_MAX))


def measure_item_noise(item: Item, fact: Fact, task: Task) -> NoiseRecord | None:
    """`measure_noise` of a row, by the row alone; None for a judgment that does not know its twin's claim.

    Args:
        item: the row.
        fact: as `rebuild_fact` reads it back.
        task: under the gates of the build.
    """
    if item.question_type != "judgment":
        options = fact.candidates if item.question_type == "multi-choice" else ()
        return measure_noise(fact, item.group_id, item.question_type, task, options, fact.truth)
    row = RowEvidence.of(item)
    # Rows from before the test: a false claim is then compared with the truth as printed, a true one with nothing.
    if row.claim is None or (row.twin_value is None and row.claim.holds):
        return None
    both = row.claim.value, fact.truth_candidate.value if row.twin_value is None else row.twin_value
    return measure_noise(fact, item.group_id, "judgment", task, claims=both if row.claim.holds else both[::-1])


def find_noise_problems(item: Item, fact: Fact, task: Task) -> list[tuple[str, str]]:
    """(check, detail) where a row fails the noise test or records another result than the test gives."""
    gates = task.gates.noise
    again = measure_item_noise(item, fact, task)
    if again is None:
        return []
    share = again.kept
    found = []
    stored = RowEvidence.of(item).noise
    # A draw on the edge may fall otherwise on another machine.
    if stored is not None and (stored.draws != gates.draws or abs(stored.kept - share) > 1.5 / gates.draws):
        found.append(("noise", f"the row says {stored.kept} of {stored.draws} draws, {share} of {gates.draws}"))
    elif stored is not None and abs(stored.lead - again.lead) > 0.05 * again.lead + 0.05:
        found.append(("noise", f"the row says that its answer leads by {stored.lead} deviations, not {again.lead:.2f}"))
    if share < gates.kept_min and item.difficulty != "stress":
        found.append(("noise", f"the answer stays in {share} of the draws; {gates.kept_min} are needed"))
    return found
