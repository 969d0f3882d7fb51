"""`vgbench eval --judge`: a model grades what no rule can score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._screen import progress_bar, shorten_start
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Judge


_ASKINGS = 3  # requests for one metric while the reply holds no valid score


def find_rubric(benchmark: str) -> Judge:
    """How a model grades the replies to a benchmark.

    Raises:
        ConfigError: it does not.
    """
    from vgbench_gen.evaluation.base import benchmarks

    rubrics = {name: one for name in benchmarks if (one := benchmarks[name].judge) is not None}
    if benchmark not in rubrics:
        raise ConfigError(f"--benchmark: found {benchmark}; a judge grades {' or '.join(rubrics)}.")
    return rubrics[benchmark]


def grade(
    benchmark: str,
    place: Path,
    data: Path | None,
    judges: Sequence[str],
    metrics: str,
    repeats: int,
    scores: Path | None,
    sent: BackendOptions,
) -> dict[str, Any]:
    """Grade samples; several judges or repeats each have a file of their own named after `scores`.

    Args:
        benchmark: whose rubric.
        place: a file of samples, or a folder of images that were made for the tasks of `data`.
        data: the benchmark's own files.
        judges: specs; the benchmark's own judge where empty.
        metrics: names with commas; the usual ones where empty.
        repeats: how often each judge grades everything.
        scores: where to write; a file next to the samples where None.
        sent: how judges are asked.

    Returns:
        the number of `tasks` and of those `without_image`; `judges`, by name the file and the averages; their
        `agreement` by metric; whether no score is missing (`complete`).
    """
    from vgbench_gen.store.files import dataset_error

    rubric = find_rubric(benchmark)
    if place.is_file() or (data is None and not place.is_dir()):
        samples = rubric.read_samples(place)
        tasks, out = len(samples), scores or place.with_suffix(".scores.jsonl")
    elif data is None:
        raise ConfigError("DATASET: none named; expected the benchmark's data with --generated FOLDER.")
    else:
        samples, tasks = rubric.generated_samples(data, place)
        out = scores or place / "scores.jsonl"
    if not samples:
        remedy = f"Let a model answer first: vgbench eval DATA --benchmark {benchmark} --model SPEC."
        raise dataset_error(place, "no sample", "at least one", remedy)
    passes = [(spec, k) for spec in judges or [rubric.default_spec()] for k in range(repeats)]
    graded: dict[str, list[dict[str, Any]]] = {}  # by judge, with the number of the pass where there are several
    means: dict[str, Any] = {}
    complete = True
    for spec, repeat in passes:
        evaluator = rubric.evaluator(spec, metrics, _ASKINGS, sent, repeat)
        path = out if len(passes) == 1 else _name_file(out, spec, repeat, repeats)
        with progress_bar(shorten_start(path.name), "score") as progress:
            results = evaluator.evaluate_batch(samples, sent.concurrency, path, progress)
        name = spec if repeats == 1 else f"{spec} ({repeat + 1})"
        graded[name] = results
        means[name] = {"file": str(path), **evaluator.compute_average_scores(results)}
        complete &= all(result.get(f"{metric}_score") is not None for result in results for metric in evaluator.metrics)
    agreement = rubric.agreement(graded) if len(passes) > 1 else {}
    counts = {"tasks": tasks, "without_image": tasks - len(samples)}
    return {**counts, "judges": means, "agreement": agreement, "complete": complete}


def _name_file(out: Path, spec: str, repeat: int, repeats: int) -> Path:
    from vgbench_gen.evaluation.replies import name_replies_file

    ending = f".{repeat + 1}" if repeats > 1 else ""
    return out.with_name(f"{out.stem}.{name_replies_file(out.parent, spec).stem}{ending}{out.suffix or '.jsonl'}")


def list_grades(graded: Mapping[str, Any]) -> Iterator[str]:
    """What `grade` returned, in lines."""
    if graded["without_image"]:
        yield f"{graded['without_image']} of {graded['tasks']} tasks have no image and are not judged"
    for name, found in graded["judges"].items():
        yield f"{name}: {found['file']}"
        for key in found:
            if key.startswith("avg_") and not key.endswith("_100"):
                yield _describe_mean(found, key.removeprefix("avg_"))
        if found["average_100"] is not None:
            yield f"  all scores together: {found['average_100']:.1f} of 100"
        for kind in ("dimension", "reasoning_type"):
            for group, groups_means in found[f"by_{kind}"].items():
                parts = [f"{metric} {mean['mean']:.2f}" for metric, mean in groups_means.items() if mean["n"]]
                yield f"  {kind.replace('_', ' ')} {group}: {', '.join(parts) or 'no score'}"
    for metric, found in graded["agreement"].items():
        parts = [f"{name} {value:.2f}" for name, value in found.items() if isinstance(value, float)]
        yield f"agreement on {metric}, {found['n']} samples: {', '.join(parts)}"


def _describe_mean(found: Mapping[str, Any], metric: str) -> str:
    mean = found[f"avg_{metric}"]
    if mean is None:
        return f"  {metric}: no score"
    low, high = found[f"interval_{metric}"]
    missing = found[f"missing_{metric}"]
    return (
        f"  {metric}: {mean:.2f} [{low:.2f}, {high:.2f}] of 5, {found[f'avg_{metric}_100']:.1f} of 100, "
        f"n {found[f'count_{metric}']}{f', {missing} missing' if missing else ''}"
    )
