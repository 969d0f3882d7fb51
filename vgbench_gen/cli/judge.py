"""`vgbench judge`: model judges of what no rule can score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._screen import print_json, progress_bar, shorten_start
from vgbench_gen.cli._verbs import add_verb

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Judge

# No --concurrency, which is --workers here, and nothing for local models, which are too slow to judge thousands.
_OFFERED = Only(
    *("rpm", "tpm", "budget_usd", "budget_tokens", "cache", "timeout_s", "retries", "key_file", "base_url", "prices")
)
_EXAMPLE = "vgbench judge rover --samples samples.jsonl --out scores.jsonl --model openai:gpt-4o"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    add_verb(app, "judge", judge, "Score", _EXAMPLE)


def judge(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help="Whose rubric: rover.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Results as JSON lines; goes on where it stopped.")
    ],
    samples: Annotated[
        Path | None,
        typer.Option(
            "--samples",
            metavar="FILE",
            help="JSON lines with sample_id, original_image, generated_image (paths), prompt, think_output, …",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FOLDER", help="Instead: the benchmark's own parquet files, …")
    ] = None,
    generated: Annotated[
        Path | None,
        typer.Option("--generated", metavar="FOLDER", help="… and the folder with gen_ID.png and gen_ID.txt."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="SPEC",
            help="The judge; repeat it to see how far judges agree. Default: the shared Azure.",
        ),
    ] = None,
    metrics: Annotated[
        str,
        typer.Option("--metrics", metavar="A,B", help="reasoning_process, reasoning_visual, reasoning_alignment, …"),
    ] = "",
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Let every judge judge so often, to see its spread.")
    ] = 1,
    askings: Annotated[
        int, typer.Option("--askings", metavar="N", min=1, help="Of one metric, where a reply holds no valid score.")
    ] = 3,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Samples judged at once.")] = 10,
    *,
    sent: Annotated[BackendOptions, _OFFERED],
    as_json: bool = False,
) -> None:
    """Grade reasoning and generated images with a model, by ROVER's rubric: 1 to 5, and 0 to 100.

    Without written reasoning the process scores 1 and nobody is asked; alignment is at most one above the visual score.
    A metric for which the judge gives no valid score is missing, not zero, and is asked again by the next run. With
    several judges or repeats each has a file of its own beside --out, and their agreement is told. Exits 1 if a score
    is missing.
    """
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.evaluation.base import benchmarks

    rubrics = {name: one for name in benchmarks if (one := benchmarks[name].judge) is not None}
    if benchmark not in rubrics:
        raise ConfigError(f"BENCHMARK: found {benchmark!r}; expected {' or '.join(rubrics)}.")
    rubric = rubrics[benchmark]
    judged, tasks = _read_samples(rubric, benchmark, samples, data, generated)
    sent = sent.model_copy(update={"concurrency": workers})
    passes = [(spec, repeat) for spec in model or [rubric.default_spec()] for repeat in range(repeats)]
    said: dict[str, list[dict[str, Any]]] = {}  # by judge, with the number of the pass where there are several
    means: dict[str, Any] = {}
    incomplete = False
    for spec, repeat in passes:
        evaluator = rubric.evaluator(spec, metrics, askings, sent, repeat)
        path = out if len(passes) == 1 else _name_file(out, spec, repeat, repeats)
        with progress_bar(shorten_start(path.name), "score") as progress:
            results = evaluator.evaluate_batch(judged, workers, path, progress)
        name = spec if repeats == 1 else f"{spec} ({repeat + 1})"
        said[name] = results
        means[name] = {"file": str(path), **evaluator.compute_average_scores(results)}
        incomplete |= any(result.get(f"{metric}_score") is None for result in results for metric in evaluator.metrics)
    agreed = rubric.agreement(said) if len(passes) > 1 else {}
    if as_json:
        without = {"tasks": tasks, "without_image": tasks - len(judged)}
        print_json({**without, "judges": means, "agreement": agreed})
    else:
        if tasks > len(judged):
            print(f"{tasks - len(judged)} of {tasks} tasks have no image in {generated} and are not judged")
        print("\n".join(_list_means(means, agreed)))
    if incomplete:
        raise typer.Exit(1)


def _read_samples(
    rubric: Judge, benchmark: str, samples: Path | None, data: Path | None, generated: Path | None
) -> tuple[Sequence[Any], int]:
    """The samples to judge, and how many tasks they were taken from."""
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.store.files import dataset_error

    if samples is not None and data is None and generated is None:
        found = rubric.read_samples(samples)
        tasks = len(found)
    elif samples is None and data is not None and generated is not None:
        found, tasks = rubric.generated_samples(data, generated)
    else:
        raise ConfigError("found neither or both; expected --samples FILE, or --data FOLDER with --generated FOLDER.")
    if not found:
        remedy = f"Let a model answer first: vgbench eval DATA --benchmark {benchmark} --model SPEC."
        raise dataset_error(samples or generated or ".", "no sample", "at least one", remedy)
    return found, tasks


def _name_file(out: Path, spec: str, repeat: int, repeats: int) -> Path:
    from vgbench_gen.evaluation.replies import name_replies_file

    ending = f".{repeat + 1}" if repeats > 1 else ""
    return out.with_name(f"{out.stem}.{name_replies_file(out.parent, spec).stem}{ending}{out.suffix or '.jsonl'}")


def _list_means(means: Mapping[str, Any], agreed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, found in means.items():
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
    for metric, found in agreed.items():
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
