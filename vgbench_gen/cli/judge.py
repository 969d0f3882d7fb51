"""`vgbench judge`: model judges of what no rule can score."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.cli._flags import Only
from vgbench_gen.cli._verbs import add_verb

if TYPE_CHECKING:
    from vgbench_gen.evaluation.base import Judge

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
    sent: Annotated[
        BackendOptions,
        Only(
            "rpm",
            "tpm",
            "budget_usd",
            "budget_tokens",
            "cache",
            "timeout_s",
            "retries",
            "key_file",
            "base_url",
            "prices",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print averages and agreement as JSON.")] = False,
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
    judged, tasks = _samples(rubric, benchmark, samples, data, generated)
    sent = sent.model_copy(update={"concurrency": workers})
    runs: dict[str, list[dict[str, Any]]] = {}
    told: dict[str, Any] = {}
    names = [(spec, repeat) for spec in model or [rubric.default_spec()] for repeat in range(repeats)]
    for spec, repeat in names:
        evaluator = rubric.evaluator(spec, metrics, askings, sent, repeat)
        path = out if len(names) == 1 else _beside(out, spec, repeat, repeats)
        with _bar(path.name) as progress:
            results = evaluator.evaluate_batch(judged, workers, path, progress)
        name = spec if repeats == 1 else f"{spec} ({repeat + 1})"
        runs[name] = results
        told[name] = {"file": str(path), **evaluator.compute_average_scores(results)}
    found = rubric.agreement(runs) if len(runs) > 1 else {}
    if as_json:
        without = {"tasks": tasks, "without_image": tasks - len(judged)}
        print(json.dumps({**without, "judges": told, "agreement": found}, indent=2, ensure_ascii=False))
    else:
        if tasks > len(judged):
            print(f"{tasks - len(judged)} of {tasks} tasks have no image in {generated} and are not judged")
        print("\n".join(_lines(told, found)))
    checked = evaluator.metrics
    if any(
        result.get(f"{metric}_score") is None for results in runs.values() for result in results for metric in checked
    ):
        raise typer.Exit(1)


def _samples(
    rubric: Judge, benchmark: str, samples: Path | None, data: Path | None, generated: Path | None
) -> tuple[Sequence[Any], int]:
    """Return the samples, and how many tasks they were taken from."""
    from vgbench_gen.core.errors import ConfigError
    from vgbench_gen.store.files import dataset_error

    if (samples is None) == (data is None) or (data is None) != (generated is None):
        raise ConfigError("found neither or both; expected --samples FILE, or --data FOLDER with --generated FOLDER.")
    if samples is not None:
        found = rubric.read_samples(samples)
        tasks = len(found)
    else:
        assert data is not None
        assert generated is not None
        found, tasks = rubric.generated_samples(data, generated)
    if not found:
        remedy = f"Let a model answer first: vgbench eval DATA --benchmark {benchmark} --model SPEC."
        raise dataset_error(samples or generated or ".", "no sample", "at least one", remedy)
    return found, tasks


def _beside(out: Path, spec: str, repeat: int, repeats: int) -> Path:
    from vgbench_gen.evaluation.replies import replies_path

    ending = f".{repeat + 1}" if repeats > 1 else ""
    return out.with_name(f"{out.stem}.{replies_path(out.parent, spec).stem}{ending}{out.suffix or '.jsonl'}")


def _bar(name: str) -> Any:
    from contextlib import contextmanager

    from tqdm import tqdm

    @contextmanager
    def shown() -> Iterator[Any]:
        with tqdm(desc=name[-40:], unit="score", disable=None) as bar:

            def progress(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield progress

    return shown()


def _lines(told: Mapping[str, Any], agreed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, found in told.items():
        yield f"{name}: {found['file']}"
        for key in [key for key in found if key.startswith("avg_") and not key.endswith("_100")]:
            metric = key.removeprefix("avg_")
            if found[key] is None:
                yield f"  {metric}: no score"
                continue
            low, high = found[f"interval_{metric}"]
            missing = found[f"missing_{metric}"]
            yield (
                f"  {metric}: {found[key]:.2f} [{low:.2f}, {high:.2f}] of 5, {found[f'{key}_100']:.1f} of 100, "
                f"n {found[f'count_{metric}']}{f', {missing} missing' if missing else ''}"
            )
        if found["average_100"] is not None:
            yield f"  all scores together: {found['average_100']:.1f} of 100"
        for kind in ("dimension", "reasoning_type"):
            for group, means in found[f"by_{kind}"].items():
                parts = [f"{metric} {mean['mean']:.2f}" for metric, mean in means.items() if mean["n"]]
                yield f"  {kind.replace('_', ' ')} {group}: {', '.join(parts) or 'no score'}"
    for metric, found in agreed.items():
        parts = [f"{name} {value:.2f}" for name, value in found.items() if isinstance(value, float)]
        yield f"agreement on {metric}, {found['n']} samples: {', '.join(parts)}"
