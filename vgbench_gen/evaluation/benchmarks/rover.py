"""ROVER: does a model's reasoning, in words and in the image that it makes, hold (`docs/protocols.md#rover`)?

`cheryyunl/ROVER` on the Hub, configuration `ROVER-IG`, split `train` (arXiv 2511.01163): `id`, `dimension` (a class
label), `reasoning_type`, `prompt`, `target_description`, `keywords`, `image`, `target_image` (may be null).

Two steps. `vgbench eval DATA --benchmark rover --model SPEC` lets a model that can make images answer: `gen_{id}.png`
and `gen_{id}.txt` in a folder beside its replies. A judge then grades them from 1 to 5: `vgbench judge rover`, or from
Python with the names below, which are those of the benchmark's users.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import Backend, Reply
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.errors import ConfigError, DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import Benchmark, benchmarks
from vgbench_gen.evaluation.benchmarks import _foreign, _rover_judge, _rover_tables
from vgbench_gen.evaluation.benchmarks._foreign import Foreign, Where, foreign_item
from vgbench_gen.evaluation.benchmarks._rover_journal import Journal, basis_of
from vgbench_gen.evaluation.benchmarks._rover_judge import EXTRAS, MAX_RETRIES, METRICS, Verdict
from vgbench_gen.evaluation.benchmarks._rover_samples import (
    DIMENSIONS,
    REASONING_TYPES,
    EvaluationSample,
    Picture,
    as_png,
    digest,
    sample_of,
    think_output_of,
)
from vgbench_gen.importers._files import RowError, column, optional
from vgbench_gen.importers._files import text as text_of
from vgbench_gen.store import shards
from vgbench_gen.store.files import dataset_error, write_bytes

__all__ = [
    "DIMENSIONS",
    "EXTRAS",
    "METRICS",
    "REASONING_TYPES",
    "EvaluationSample",
    "ROVEREvaluator",
    "evaluate_batch",
    "evaluate_single_sample",
]

REPOSITORY = "cheryyunl/ROVER"
JUDGE_WORKERS = 10  # as upstream


def default_judge() -> str:
    """The judge of the benchmark's users: the deployment TRAPI_DEPLOYMENT of the shared Azure instance."""
    from vgbench_gen.backends.azure import TRAPI_DEPLOYMENT

    return f"trapi:{os.environ.get('TRAPI_DEPLOYMENT') or TRAPI_DEPLOYMENT}"


class ROVEREvaluator:
    """A judge for samples.

    Args:
        metrics: some of `METRICS` and `EXTRAS`, also as one text with commas; the three of `METRICS` by default.
        max_retries: askings of one metric where a reply holds no valid score.
        judge: spec such as `openai:gpt-4o`, or an open backend; `default_judge` where None.
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
        self.metrics = _rover_judge.checked(metrics)
        self.max_retries, self.repeat = max_retries, repeat
        self._options = options
        self._judge = default_judge() if judge is None else judge

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
        journal = Journal(None if output_path is None else Path(output_path), basis_of(opened.spec, self.repeat))
        done, total = 0, len(given) * len(self.metrics)

        def keep(sample: EvaluationSample, inputs: str, verdict: Verdict) -> None:
            nonlocal done
            journal.add(sample.sample_id, sample.place, inputs, verdict)
            done += 1
            if progress is not None:
                progress(done, total)

        async def run() -> None:
            try:
                await _rover_judge.judge_all(opened, work, num_workers, self.max_retries, self.repeat, keep)
            finally:
                if opened is not self._judge:
                    await opened.close()

        try:
            work = list(self._missing(given, journal))
            done = total - sum(len(metrics) for _, metrics in work)
            if progress is not None:
                progress(done, total)
            _rover_judge.run_here(run)
        except BaseException:
            journal.close()
            raise
        journal.close(places)
        return [journal.result(sample.sample_id, sample.place, self.metrics) for sample in given]

    def compute_average_scores(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """`avg_<metric>` and `count_<metric>`, and more; see `_rover_tables.average_scores`."""
        return _rover_tables.average_scores(results, self.metrics)

    def _sent(self, num_workers: int) -> BackendOptions:
        return (self._options or BackendOptions()).model_copy(update={"concurrency": max(1, num_workers)})

    def _missing(
        self, samples: Sequence[EvaluationSample], journal: Journal
    ) -> Iterator[tuple[EvaluationSample, tuple[str, ...]]]:
        for sample in samples:
            known = journal.given(sample.sample_id, digest(sample, _rover_judge.images_of(sample)[0]))
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


# --- the benchmark's own tasks


class Tasks(Foreign):
    """ROVER's tasks; a model's images and words are kept as the benchmark wants them."""

    def keep(self, item: Item, reply: Reply, folder: Path) -> str:
        """As `evaluation.base.Keeps`: `gen_{id}.png` and `gen_{id}.txt`, the words also where there is no image."""
        task = item.evidence["id"]
        picture, problem = folder / f"gen_{task}.png", "the reply holds no image"
        write_bytes(folder / f"gen_{task}.txt", reply.text.encode("utf-8", "replace"))
        if reply.images:
            try:
                write_bytes(picture, as_png(reply.images[0], "the reply"))
                return ""
            except DatasetError as error:
                problem = str(error)
        picture.unlink(missing_ok=True)  # it came with other words
        return f"no_image: {problem}"

    def samples(self, folder: Path) -> Iterator[EvaluationSample]:
        """What a model made of the tasks, from the folder of `keep`; tasks without an image are left out."""
        for item in self.items:
            task, told = item.evidence["id"], item.evidence
            picture = folder / f"gen_{task}.png"
            if picture.is_file():
                target = self.image_named(told["target_image"]) if told["target_image"] else None
                yield EvaluationSample(
                    sample_id=task,
                    original_image=self.image(item, 0),
                    generated_image=picture,
                    target_image=target,
                    prompt=item.question,
                    dimension=told["dimension"],
                    reasoning_type=told["reasoning_type"],
                    keywords=told["keywords"],
                    target_description=told["target_description"],
                    think_output=think_output_of(folder, task),
                )


@benchmarks.register("rover")
class Rover(Benchmark):
    """ROVER's image generation tasks from their parquet files."""

    prompt_set = "rover"

    def open(self, path: Path, images: Path | None = None) -> Tasks:
        """As `Benchmark.open`."""
        place = _foreign.place_of(path, REPOSITORY, ["ROVER-IG/*"])
        if path.is_file():
            files = [path]
        else:
            files = place.find("ROVER-IG/*.parquet", "**/ROVER-IG/*.parquet", "*.parquet", "data/*.parquet")
        items: list[Item] = []
        pictures: dict[str, Where] = {}
        notes = _foreign.Notes()
        for file in files:
            labels = _class_labels(file)
            for number, fields in _foreign.read_rows(file, ["id", "prompt", "image"]):
                try:
                    items.append(_item(file, number, len(items), fields, labels, pictures))
                except RowError as problem:
                    notes.add(file, number, problem)
        if not items:
            raise dataset_error(path, "no task", "tasks of ROVER", f"Download {REPOSITORY} and name its folder.")
        return Tasks("ROVER", place.folder, items, pictures, notes.bad)


def _item(
    file: Path,
    number: int,
    index: int,
    fields: Mapping[str, Any],
    labels: Sequence[str],
    pictures: dict[str, Where],
) -> Item:
    task = text_of(fields, "id")
    if "/" in task or "\\" in task or task.startswith("."):
        raise RowError("id", f"{task[:60]!r}, which is no name of a file")
    names = _foreign.names_of(column(fields, "image"))
    targets = _foreign.names_of(fields.get("target_image"))
    dimension = optional(fields, "dimension")
    if isinstance(dimension, int):
        dimension = labels[dimension] if 0 <= dimension < len(labels) else ""
    told = {
        name: value if isinstance(value := optional(fields, name), str) else ""
        for name in ("reasoning_type", "keywords", "target_description")
    }
    place = EvaluationSample(
        task, b"", b"", dimension=str(dimension or ""), reasoning_type=told["reasoning_type"]
    ).place
    pictures[names[0]] = Where(file, number, "image")
    if targets:
        pictures[targets[0]] = Where(file, number, "target_image")
    return foreign_item(
        f"rover-{task}",
        benchmark="ROVER",
        task=place[0] or "unknown",
        question_type="image",
        question=text_of(fields, "prompt"),
        answer="",
        images=names[:1],
        source=place[0] or "unknown",
        scene_id=task,
        category=place[1],
        index=index,
        evidence={
            "id": task,
            **told,
            "dimension": place[0],
            "reasoning_type": place[1],
            "target_image": targets[0] if targets else "",
        },
    )


def _class_labels(file: Path) -> list[str]:
    """Names of the class label `dimension`, which the Hub's files keep in their metadata; empty where it is text."""
    with shards.open_parquet(file) as opened:
        metadata = opened.schema_arrow.metadata or {}
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
        return [str(name) for name in features["dimension"]["names"]]
    except (ValueError, KeyError, TypeError):
        return []
