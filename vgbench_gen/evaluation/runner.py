"""Ask what was not answered yet, several models side by side, and keep every reply as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, overload

from vgbench_gen.backends.base import Backend
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.config import parse_config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.progress import show_progress
from vgbench_gen.evaluation.base import Keeps, NamesImages, QuestionRow, Source, benchmarks
from vgbench_gen.evaluation.baselines import PREFIX, Baseline, open_baseline
from vgbench_gen.evaluation.interrupts import INTERRUPTED, Stop
from vgbench_gen.evaluation.loaded import LoadedDataset
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.replies import FOLDER
from vgbench_gen.evaluation.reply_files import find_source_replies
from vgbench_gen.evaluation.results import ScoredRun, get_path
from vgbench_gen.evaluation.session import Progress, Run, Session
from vgbench_gen.evaluation.visual_cot import DEFAULT_SET
from vgbench_gen.evaluation.visual_cot_models import expand_models
from vgbench_gen.store.files import dataset_error, write_bytes

__all__ = ["InterruptedRunError", "Progress", "Run", "evaluate", "evaluate_all", "require_images"]

MISSING_IMAGES = "missing_images.txt"
AnyDataset = str | PathLike[str] | LoadedDataset


class InterruptedRunError(KeyboardInterrupt):
    """Asking was interrupted in an orderly way. runs: what became of each model. signal: number of what interrupted."""

    def __init__(self, runs: Sequence[Run], signal: int) -> None:
        super().__init__()
        self.runs, self.signal = tuple(runs), signal


@overload
def evaluate(dataset: AnyDataset, models: str, **options: Any) -> ScoredRun: ...
@overload
def evaluate(dataset: AnyDataset, models: Sequence[str], **options: Any) -> list[ScoredRun]: ...
def evaluate(
    dataset: AnyDataset,
    models: str | Sequence[str],
    *,
    benchmark: str = "vgbench",
    backend: BackendOptions | None = None,
    replies: str | PathLike[str] | None = None,
    progress: bool = True,
    image_model: str = "",
    **options: Any,
) -> ScoredRun | list[ScoredRun]:
    """Ask one model, or several at once, what they were not asked yet. Returns what became of each, with its scores:
    `run.accuracy`, `run.scores`, `run.to_pandas()`.

    Args:
        dataset: as `vgbench_gen.load` takes it, or what it gives, whole or filtered.
        models: `openai:gpt-4o`, `vllm:http://host:8000/v1#name`, `baseline:constant`, ..., or one of the names of
            `visual_cot_models.toml`, which ask for `visual_cot`; a list of them for several.
        benchmark: what kind of dataset it is.
        backend: how requests are sent.
        replies: folder of the replies; `replies` in the dataset's folder by default.
        progress: show a bar in a terminal or notebook.
        image_model: who draws where `visual_cot` is asked for; the model itself by default.
        options: fields of `options.AskOptions` such as `limit=100` or `circular=True`.

    Raises:
        ConfigError, UnknownNameError: an option makes no sense.
        DatasetError: the dataset or its replies cannot be read.
    """
    kind = benchmarks[benchmark]
    source = kind.open(get_path(dataset))
    chosen = expand_models([models] if isinstance(models, str) else models, image_model)
    options = {"prompt_set": kind.prompt_set, "max_tokens": kind.max_tokens} | options
    if chosen.visual_cot:
        options = {"visual_cot": DEFAULT_SET} | options
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
    wanted = parse_config(given, AskOptions, "evaluate")
    ids = frozenset(dataset.ids()) if isinstance(dataset, LoadedDataset) and not dataset.is_whole else None
    folder = None if replies is None else Path(replies)
    with show_progress(progress) as tell:
        ask = partial(evaluate_all, source, chosen.models, wanted, backend, folder, image_model=chosen.image_model)
        runs = _call_outside_loop(partial(ask, ids=ids, progress=lambda run: tell(run.spec, run.done, run.total)))
    asked = frozenset(row.id for row in Questions(source, wanted, ids).rows)
    found = [ScoredRun.of(run, source, wanted, asked) for run in runs]
    return found[0] if isinstance(models, str) else found


def _call_outside_loop(function: Callable[[], list[Run]]) -> list[Run]:
    """Call here, or in a thread of its own where an event loop runs in this one, as in every notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def evaluate_all(
    source: Source,
    models: Sequence[str],
    options: AskOptions | None = None,
    backend: BackendOptions | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    image_model: str = "",
    ids: Collection[str] | None = None,
) -> list[Run]:
    """Ask several models at once, each at its own pace, and return what became of each, in their order.

    A hard set is not asked what its source was asked with the same words, images and settings: those replies are
    copied, unless `folder` names a place of its own. ids: the questions to choose from; all where None.

    Memory holds the images of the requests under way, one row group of images per model, and no replies.

    Raises:
        ConfigError: no model, one twice, or an option that makes no sense.
        DatasetError: the dataset cannot be read, or another process writes the same replies.
        KeyboardInterrupt: on Ctrl-C; what came is kept. At the first one nothing more is sent, and what is under way is
            waited for and kept (`InterruptedRunError`); the second one ends at once.
    """
    options, backend = options or AskOptions(), backend or BackendOptions()
    _check_models(models)
    questions = Questions(source, options, ids)
    if not all(spec.startswith(PREFIX) for spec in models):
        require_images(source, options, questions.rows)
    beside = None if folder or isinstance(source, Keeps) else find_source_replies(source.folder)
    folder = folder or source.folder / FOLDER
    opened: dict[str, Backend | Baseline] = {}
    drawing: list[Backend] = []
    try:
        for spec in models:
            opened[spec] = _open_model(spec, source, options, backend)
        maker = open_backend(image_model, backend) if image_model and options.visual_cot else None
        if maker is not None:
            drawing.append(maker)
        if options.visual_cot or isinstance(source, Keeps):
            _check_makers([maker] if maker is not None else opened.values())
        stop = Stop(backend.timeout_s)
        try:
            runs = asyncio.run(
                _run_sessions(
                    opened,
                    maker,
                    questions,
                    (folder, beside[0] if beside else None),
                    progress or (lambda run: None),
                    stop,
                )
            )
        except asyncio.CancelledError:
            raise (InterruptedRunError((), stop.asked) if stop.asked else KeyboardInterrupt) from None
        if stop.asked:
            raise InterruptedRunError(runs, stop.asked)
        return runs
    finally:
        asyncio.run(_close([*opened.values(), *drawing]))


def _check_models(models: Sequence[str]) -> None:
    if not models or len(set(models)) < len(models):
        # Without their names: an address may hold a password, which nothing knows of before it is opened.
        told = f"{len(models)}, {len(set(models))} of them different"
        raise ConfigError(f"models: found {told if models else 'none'}; expected at least one, each once.")


def _open_model(spec: str, source: Source, options: AskOptions, backend: BackendOptions) -> Backend | Baseline:
    """Open a model or a baseline by its spec.

    Raises:
        ConfigError: a baseline is asked to draw, or the spec makes no sense.
    """
    if not spec.startswith(PREFIX):
        return open_backend(spec, backend)
    if options.visual_cot:
        raise ConfigError(f"{spec}: found a baseline, which draws nothing; leave it out with --visual-cot.")
    return open_baseline(spec, source.again(), options.seed)


def _check_makers(makers: Iterable[Backend | Baseline]) -> None:
    """Refuse agents where images are to be made.

    Raises:
        ConfigError: one is asked to.
    """
    for who in makers:
        if isinstance(who, Backend) and not who.makes_images:
            raise ConfigError(f"{who.spec}: found an agent, which draws nothing; expected a model that makes images.")


def require_images(source: Source, options: AskOptions, rows: Sequence[QuestionRow]) -> None:
    """See that the images of these questions are there, where they lie apart and the options have them shown.

    Raises:
        DatasetError: some are missing; all of them are listed in a file.
    """
    if options.blind:
        return
    missing = source.missing_images(rows) if isinstance(source, NamesImages) else ()
    if not missing:
        return
    listed = source.folder / MISSING_IMAGES
    write_bytes(listed, "".join(f"{name}\n" for name in missing).encode())
    shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
    remedy = "Give the folder that they are below with --images, or ask only what is there (--tasks, --blind)."
    raise dataset_error(listed, f"{len(missing)} images missing ({shown})", "every image of the questions", remedy)


async def _run_sessions(
    opened: Mapping[str, Backend | Baseline],
    maker: Backend | None,
    questions: Questions,
    folders: tuple[Path, Path | None],
    progress: Progress,
    stop: Stop,
) -> list[Run]:
    folder, beside = folders
    sessions = [
        Session(spec, who, questions.again(), folder, progress, stop, maker, beside) for spec, who in opened.items()
    ]
    tasks = [asyncio.create_task(session.run()) for session in sessions]

    def told() -> None:
        for session in sessions:
            if session.result.done < session.result.total:
                session.result.stopped = session.result.stopped or INTERRUPTED
            progress(session.result)

    try:
        with stop.listening(told):
            return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if maker is not None:
            await maker.rest()


async def _close(opened: Any) -> None:
    for who in opened:
        if isinstance(who, Backend):
            await who.close()
