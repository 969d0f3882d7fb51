"""ROVER's evaluator: samples judged metric by metric, verdicts kept in a file, averages over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import Backend
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.evaluation.benchmarks.rover import judge as rover_judge
from vgbench_gen.evaluation.benchmarks.rover import tables
from vgbench_gen.evaluation.benchmarks.rover.journal import Journal, make_basis
from vgbench_gen.evaluation.benchmarks.rover.judge import MAX_RETRIES, Verdict
from vgbench_gen.evaluation.benchmarks.rover.samples import EvaluationSample, Picture, digest, sample_of

JUDGE_WORKERS = 10  # as upstream


def find_default_judge() -> str:
    """The judge of the benchmark's users: the deployment TRAPI_DEPLOYMENT of the shared Azure instance."""
    from vgbench_gen.backends.azure import TRAPI_DEPLOYMENT

    return f"trapi:{os.environ.get('TRAPI_DEPLOYMENT') or TRAPI_DEPLOYMENT}"


class ROVEREvaluator:
    """A judge for samples.

    Args:
        metrics: some of `METRICS` and `EXTRAS`, also as one text with commas; the three of `METRICS` by default.
        max_retries: askings of one metric where a reply holds no valid score.
        judge: spec such as `openai:gpt-4o`, or an open backend; `find_default_judge` where None.
        options: how a judge given by its spec is asked.
        repeat: 0, 1, … for judgements that must be independent of each other.

    Raises:
        ConfigError, UnknownNameError: an unknown metric, or no such judge.
    """

    def __init__(
        self,
        metrics: str | Sequence[str] | None = None,
        max_retries: int = MAX_RETRIES,
        judge: str | Backend | None = None,
        options: BackendOptions | None = None,
        repeat: int = 0,
    ) -> None:
        self.metrics = rover_judge.check_metrics(metrics)
        self.max_retries, self.repeat = max_retries, repeat
        self._options = options
        self._judge = find_default_judge() if judge is None else judge

    def evaluate(
        self,
        sample_id: str,
        original_image: Picture,
        generated_image: Picture,
        prompt: str,
        think_output: str = "",
        reasoning_type: str = "",
        dimension: str = "",
        keywords: str = "",
        target_description: str = "",
        target_image: Picture | None = None,
    ) -> dict[str, Any]:
        """The result of one sample; arguments as the fields of `EvaluationSample`, result as `evaluate_batch`."""
        sample = EvaluationSample(
            sample_id=sample_id,
            original_image=original_image,
            generated_image=generated_image,
            target_image=target_image,
            prompt=prompt,
            dimension=dimension,
            reasoning_type=reasoning_type,
            keywords=keywords,
            target_description=target_description,
            think_output=think_output,
        )
        return self.evaluate_batch([sample], num_workers=1)[0]

    def evaluate_batch(
        self,
        samples: Iterable[EvaluationSample | Mapping[str, Any]],
        num_workers: int = JUDGE_WORKERS,
        output_path: str | os.PathLike[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[dict[str, Any]]:
        """Judge samples and return one result each, in their order.

        A result holds `sample_id`, `dimension`, `reasoning_type`, and per metric `<metric>_score` (1 to 5, None where
        the judge gave none), `<metric>_reasoning`, `<metric>_status` and `<metric>_judge` (the model that answered);
        with alignment also `raw_alignment` and `cap_applied`.

        Args:
            samples: with ids that are all different; also as mappings with the names of the fields.
            num_workers: samples judged at once.
            output_path: JSON lines, written as verdicts come; judging again asks only for scores that are missing or
                about something else. Those of other judges in it are kept.
            progress: called with (metrics done, all).

        Raises:
            ConfigError: two samples with one id, or something that is no sample.
            DatasetError: `output_path` holds something else or is no file, or another process writes it.
            BackendError: the budget is spent or the key is refused; what came is kept.
        """
        given = [sample_of(sample) for sample in samples]
        places = {sample.sample_id: sample.place for sample in given}
        if len(places) < len(given):
            raise ConfigError("samples: found an id twice; expected ids that are all different.")
        opened = self._judge if isinstance(self._judge, Backend) else open_backend(self._judge, self._sent(num_workers))
        journal = Journal(None if output_path is None else Path(output_path), make_basis(opened.spec, self.repeat))
        done, total = 0, len(given) * len(self.metrics)

        def keep(sample: EvaluationSample, inputs: str, verdict: Verdict) -> None:
            nonlocal done
            journal.add(sample.sample_id, sample.place, inputs, verdict)
            done += 1
            if progress is not None:
                progress(done, total)

        async def run() -> None:
            try:
                await rover_judge.judge_all(opened, work, num_workers, self.max_retries, self.repeat, keep)
            finally:
                if opened is not self._judge:
                    await opened.close()

        with close_if_raised(journal.close):
            work = list(self._missing(given, journal))
            done = total - sum(len(metrics) for _, metrics in work)
            if progress is not None:
                progress(done, total)
            rover_judge.run_here(run)
        journal.close(places)
        return [journal.result(sample.sample_id, sample.place, self.metrics) for sample in given]

    def compute_average_scores(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """`avg_<metric>` and `count_<metric>`, and more; see `tables.average_scores`."""
        return tables.average_scores(results, self.metrics)

    def _sent(self, num_workers: int) -> BackendOptions:
        return (self._options or BackendOptions()).model_copy(update={"concurrency": max(1, num_workers)})

    def _missing(
        self, samples: Sequence[EvaluationSample], journal: Journal
    ) -> Iterator[tuple[EvaluationSample, tuple[str, ...]]]:
        for sample in samples:
            known = journal.given(sample.sample_id, digest(sample, rover_judge.encode_images(sample)[0]))
            if metrics := tuple(metric for metric in self.metrics if metric not in known):
                yield sample, metrics


def evaluate_single_sample(
    sample: EvaluationSample | Mapping[str, Any],
    metrics: str | Sequence[str] | None = None,
    max_retries: int = MAX_RETRIES,
    judge: str | Backend | None = None,
) -> dict[str, Any]:
    """`ROVEREvaluator.evaluate` for a sample."""
    return ROVEREvaluator(metrics, max_retries, judge).evaluate_batch([sample], num_workers=1)[0]


def evaluate_batch(
    samples: Iterable[EvaluationSample | Mapping[str, Any]],
    metrics: str | Sequence[str] | None = None,
    num_workers: int = JUDGE_WORKERS,
    max_retries: int = MAX_RETRIES,
    output_path: str | os.PathLike[str] | None = None,
    judge: str | Backend | None = None,
) -> list[dict[str, Any]]:
    """`ROVEREvaluator.evaluate_batch`."""
    return ROVEREvaluator(metrics, max_retries, judge).evaluate_batch(samples, num_workers, output_path)
