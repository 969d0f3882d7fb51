"""ROVER's evaluator: a judge scores samples by metric; verdicts are logged and averaged."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vgbench_gen import __version__
from vgbench_gen.backends.base import Backend
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.benchmarks.rover import judge as rover_judge
from vgbench_gen.evaluation.benchmarks.rover import judge_replies, tables
from vgbench_gen.evaluation.benchmarks.rover.judge import MAX_RETRIES, Verdict, merge_verdicts
from vgbench_gen.evaluation.benchmarks.rover.samples import EvaluationSample, Picture, digest, sample_of
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import ReplyWriter, name_replies_file, read_replies
from vgbench_gen.store.files import dataset_error, parse_object, replace_file

_MAX_LINE_BYTES = 1 << 20
_REMEDY = "Move the file away, or name another one."
JUDGE_WORKERS = 10  # the published default


def find_default_judge() -> str:
    """The published judge: the deployment TRAPI_DEPLOYMENT of the shared Azure instance."""
    from vgbench_gen.backends.azure import TRAPI_DEPLOYMENT

    return f"trapi:{os.environ.get('TRAPI_DEPLOYMENT') or TRAPI_DEPLOYMENT}"


class ROVEREvaluator:
    """Lets a judge score samples.

    Args:
        metrics: names from `METRICS` and `EXTRAS`, or a text of them with commas; `METRICS` by default.
        max_retries: number of requests for a metric until a reply contains a valid score.
        judge: spec such as `openai:gpt-4o`, or an open backend; `find_default_judge` if None.
        options: options of the backend if `judge` is a spec.
        repeat: 0, 1, … for independent judgments of the same samples.

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
        """The result of one sample, as of `evaluate_batch`; the arguments are the fields of `EvaluationSample`."""
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

        A result has `sample_id`, `dimension`, `reasoning_type`, and per metric `<metric>_score` (1 to 5, None if the
        judge gave none), `<metric>_reasoning`, `<metric>_status` and `<metric>_judge` (the model that answered); for
        alignment also `raw_alignment` and `cap_applied`.

        Args:
            samples: samples with different ids, or mappings from the names of their fields.
            num_workers: number of samples that are judged in parallel.
            output_path: file for the results as JSON lines. The judge's replies are kept in a folder with this name and
                the suffix `.replies`; judging again requests only missing scores and those of changed samples.
            progress: called with (metrics done, metrics in all).

        Raises:
            ConfigError: two samples with one id, or an invalid sample.
            DatasetError: `output_path` is another file or cannot be written, or another process writes it.
            BackendError: the budget is spent or the key is refused; replies until then are kept.
        """
        batch = [sample_of(sample) for sample in samples]
        if len({sample.sample_id for sample in batch}) < len(batch):
            raise ConfigError("samples: found an id twice; expected ids that are all different.")
        out = None if output_path is None else Path(output_path)
        if out is not None:
            _check_results(out)
        opened = self._judge if isinstance(self._judge, Backend) else open_backend(self._judge, self._sent(num_workers))
        with nullcontext() if out is None else self._open_log(out, opened) as log:
            verdicts = self._read_verdicts(batch, log)
            work = [(one, tuple(m for m in self.metrics if (one.sample_id, m) not in verdicts)) for one in batch]
            total = len(batch) * len(self.metrics)

            def keep(sample: EvaluationSample, inputs: str, verdict: Verdict) -> None:
                verdicts[sample.sample_id, verdict.metric] = verdict
                if log is not None and not rover_judge.needs_no_judge(sample, verdict.metric):
                    log.append(_make_line(self._make_key(sample, verdict.metric, log), inputs, verdict))
                if progress is not None:
                    progress(len(verdicts), total)

            async def run() -> None:
                missing = [(sample, metrics) for sample, metrics in work if metrics]
                try:
                    await rover_judge.judge_all(opened, missing, num_workers, self.max_retries, self.repeat, keep)
                finally:
                    if opened is not self._judge:
                        await opened.close()

            if progress is not None:
                progress(len(verdicts), total)
            rover_judge.run_here(run)
        results = [
            merge_verdicts(one.sample_id, one.place, {m: verdicts[one.sample_id, m] for m in self.metrics})
            for one in batch
        ]
        if out is not None:
            with replace_file(out) as temporary, temporary.open("w", encoding="utf-8", errors="replace") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in results)
        return results

    def _read_verdicts(
        self, samples: Sequence[EvaluationSample], log: ReplyWriter | None
    ) -> dict[tuple[str, str], Verdict]:
        """(sample id, metric) -> verdict that the judge gave to the same sample in an earlier run."""
        known = {} if log is None else read_replies(log.path, log.header).lines
        found: dict[tuple[str, str], Verdict] = {}
        for sample in samples if known else ():
            inputs = digest(sample, rover_judge.encode_images(sample)[0])
            for metric in self.metrics:
                line = known.get(self._make_key(sample, metric, log))
                if line is not None and line.request_digest == inputs:
                    verdict = _read_verdict(line, metric)
                    if verdict.score is not None:
                        found[sample.sample_id, metric] = verdict
        return found

    def _open_log(self, out: Path, judge: Backend) -> ReplyWriter:
        header = Header(
            dataset="",
            benchmark="ROVER",
            spec=judge.spec,
            model=judge.model,
            settings={"max_tokens": rover_judge.MAX_TOKENS},
            code=__version__,
        )
        return ReplyWriter(name_replies_file(out.with_name(f"{out.name}.replies"), judge.spec), header)

    def _make_key(self, sample: EvaluationSample, metric: str, log: ReplyWriter | None) -> ReplyKey:
        words = f"rover-judge-{rover_judge.read_words().version}"
        settings = "" if log is None else log.header.digest
        return ReplyKey(sample.sample_id, 0, self.repeat, f"judge-{metric}", words, settings)

    def compute_average_scores(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Averages of results; see `tables.average_scores`."""
        return tables.average_scores(results, self.metrics)

    def _sent(self, num_workers: int) -> BackendOptions:
        return (self._options or BackendOptions()).model_copy(update={"concurrency": max(1, num_workers)})


def _make_line(key: ReplyKey, inputs: str, verdict: Verdict) -> ReplyLine:
    line = ReplyLine(key=key, benchmark="ROVER", model=verdict.judge, request_digest=inputs, response=None)
    if verdict.reply is None:
        return line.model_copy(update={"error": f"{verdict.status}: {verdict.reasoning}"})
    reply = verdict.reply
    usage = {} if reply.usage is None else asdict(reply.usage)
    spent = {"usage": usage, "cost_usd": reply.cost_usd, "latency_s": reply.latency_s, "time": round(time.time(), 3)}
    return line.model_copy(update={"response": reply.text, "finish_reason": reply.finish_reason} | spent)


def _read_verdict(line: ReplyLine, metric: str) -> Verdict:
    """The verdict in a logged reply of the judge."""
    found = judge_replies.read(line.response, rover_judge.name_score(metric))
    return Verdict(metric, found.score, found.reasoning, "judge_failed" if found.score is None else "ok", line.model)


def _check_results(path: Path) -> None:
    """Check that results can be written to a file, before a judge is asked.

    Raises:
        DatasetError: the file cannot be written, or holds something other than results.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            file.seek(0)
            first = file.readline(_MAX_LINE_BYTES)
    except OSError as error:
        found = f"nothing that can be written ({error.strerror})"
        raise dataset_error(path, found, "a file for results", "Name a file.") from None
    if first and not isinstance(parse_object(first, path, "results", _REMEDY, "keep").get("sample_id"), str):
        raise dataset_error(f"{path}, line 1", "no sample_id", "results of a judge", _REMEDY)


def evaluate_single_sample(
    sample: EvaluationSample | Mapping[str, Any],
    metrics: str | Sequence[str] | None = None,
    max_retries: int = MAX_RETRIES,
    judge: str | Backend | None = None,
) -> dict[str, Any]:
    """Judge one sample; see `ROVEREvaluator.evaluate_batch`."""
    return ROVEREvaluator(metrics, max_retries, judge).evaluate_batch([sample], num_workers=1)[0]


def evaluate_batch(
    samples: Iterable[EvaluationSample | Mapping[str, Any]],
    metrics: str | Sequence[str] | None = None,
    num_workers: int = JUDGE_WORKERS,
    max_retries: int = MAX_RETRIES,
    output_path: str | os.PathLike[str] | None = None,
    judge: str | Backend | None = None,
) -> list[dict[str, Any]]:
    """Judge samples; see `ROVEREvaluator.evaluate_batch`."""
    return ROVEREvaluator(metrics, max_retries, judge).evaluate_batch(samples, num_workers, output_path)
