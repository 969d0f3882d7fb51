"""What a benchmark is: where its questions come from, and which prompts they get.

Rules: `docs/protocols.md#reading-a-reply`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from vgbench_gen.backends.base import Reply
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.scoring import ScoringRules

if TYPE_CHECKING:
    from vgbench_gen.backends.spec import BackendOptions
    from vgbench_gen.evaluation.board import Board, BoardRun
    from vgbench_gen.evaluation.cases import ScoredCase
    from vgbench_gen.evaluation.layouts import TableLayout
    from vgbench_gen.evaluation.tables import Table, TableMaker


class QuestionRow(NamedTuple):
    """What choosing questions needs to know of one."""

    row: int
    """The place of the question in its source."""
    id: str
    """The id of the question."""
    task: str
    """The kind of question."""
    question_type: str
    """The question type: "multi-choice", "judgment" and so on."""
    options: int
    """How many options it has."""
    scene: str
    """The source and the scene of its images: "source/scene"."""
    group: str
    """The name of its truth; questions about one truth share it."""

    @property
    def source(self) -> str:
        """Where its scans or images come from."""
        return self.scene.partition("/")[0]


class Source(Protocol):
    """Questions of one benchmark, read when they are needed.

    benchmark: name in records. fingerprint: of all questions. folder: where `replies/` goes.
    """

    @property
    def benchmark(self) -> str: ...  # noqa: D102
    @property
    def fingerprint(self) -> str: ...  # noqa: D102
    @property
    def folder(self) -> Path: ...  # noqa: D102

    def rows(self) -> Iterator[QuestionRow]:
        """All questions in order, without reading what choosing does not need."""
        ...

    def item(self, row: int) -> Item:
        """The question at a place; neighbours are cheap."""
        ...

    def image(self, item: Item, k: int) -> bytes | Path:
        """The k-th image of a question, encoded, or the file that holds it."""
        ...

    def again(self) -> Source:
        """A reader of the same questions for another walk through them, with buffers of its own."""
        ...


@runtime_checkable
class HasTexts(Protocol):
    """A source that reads all it takes to ask and score its questions faster than question by question."""

    def texts(self) -> Iterator[Item]:
        """All questions in order; what their answers were found from may be left out."""
        ...


def read_questions(source: Source) -> Iterator[Item]:
    """Yield all questions in order, without what their answers were found from where that is faster."""
    return source.texts() if isinstance(source, HasTexts) else (source.item(row.row) for row in source.rows())


@runtime_checkable
class NamesImages(Protocol):
    """A source whose images lie apart from its questions, and may not all be there."""

    def missing_images(self, rows: Sequence[QuestionRow]) -> Sequence[str]:
        """Names of images of these questions that are not there, each once, in order of first use."""
        ...


@runtime_checkable
class Keeps(Protocol):
    """A source whose replies are images: models are asked to change the question's, and what they give is kept."""

    def keep(self, item: Item, reply: Reply, folder: Path) -> str:
        """Keep what a reply holds besides its text.

        Args:
            item: the question.
            reply: to it.
            folder: of this model, beside its file of replies; made where needed.

        Returns:
            Why the reply is none ("no_image: ..."), "" where it is one.
        """
        ...


class Evaluator(Protocol):
    """One judge with the metrics that it is asked for."""

    @property
    def metrics(self) -> Sequence[str]:
        """The metrics, each with a `<metric>_score` in every result."""
        ...

    def evaluate_batch(
        self, samples: Iterable[Any], num_workers: int, output_path: Path, progress: Callable[[int, int], None]
    ) -> list[dict[str, Any]]:
        """Judge samples and return one result each, in their order; the file keeps what was judged."""
        ...

    def compute_average_scores(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the averages over results, by metric and group."""
        ...


class Judge(Protocol):
    """How a model grades what no rule can score (`vgbench eval --judge`)."""

    def default_spec(self) -> str:
        """Return the judge that is asked where the user names none."""
        ...

    def read_samples(self, path: Path) -> Sequence[Any]:
        """Read samples from a file of JSON lines."""
        ...

    def generated_samples(self, data: Path, generated: Path) -> tuple[Sequence[Any], int]:
        """Return what a model made of the benchmark's own tasks, and how many tasks there are."""
        ...

    def evaluator(self, spec: str, metrics: str, askings: int, options: BackendOptions, repeat: int) -> Evaluator:
        """Make the evaluator of one judge; an empty text of metrics stands for the usual ones."""
        ...

    def agreement(self, runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
        """Return how far several judges agree, by metric."""
        ...


class Benchmark(abc.ABC):
    """A plug-in that owns everything about one benchmark: questions, prompts, scoring, tables, and what is its alone.

    There is one instance per registered name, without state. A benchmark of another package registers with
    `@benchmarks.register("name")` in a module that an entry point of the group `vgbench_gen.benchmarks` names. Only
    `open` has to be written; all else has a default that suits questions of the general types.
    """

    prompt_set: ClassVar[str] = "paper"
    """The prompt set of `templates/prompts/` that is used where the user names none."""
    max_tokens: ClassVar[int] = 0
    """The length of a reply where the user names none; 0 for the general rule (`prompting.AskOptions`)."""
    short_prompts: ClassVar[Mapping[str, str]] = {}
    """Other names of prompt sets, as users of the benchmark know them."""
    short_tasks: ClassVar[Mapping[str, str]] = {}
    """Other names of tasks, likewise."""
    scoring: ClassVar[ScoringRules] = ScoringRules()
    """How replies are read, compared, and judged by the published script; it says which `Item.benchmark` it owns."""
    builds_datasets: ClassVar[bool] = False
    """Whether its data are datasets that this program built, so that a part of one can be written as another one."""
    judge: ClassVar[Judge | None] = None
    """How a model grades its replies, where no rule can."""

    @abc.abstractmethod
    def open(self, path: Path, images: Path | None = None) -> Source:
        """The questions under `path`.

        Args:
            path: dataset folder or data file.
            images: folder of images that lie apart, where the format has such.

        Raises:
            DatasetError: nothing there that it can read.
        """

    def next_step(self, dataset: Path, made: Path) -> str:
        """Return the command that follows `vgbench eval` where it is not `vgbench compare`, else "".

        Args:
            dataset: as the user named it.
            made: the folder with what the model made besides words.
        """
        return ""

    @property
    def layouts(self) -> Sequence[TableLayout]:
        """The tables of its paper, as far as a column is the mean score over some of the questions."""
        return ()

    def tables(self, maker: TableMaker) -> Sequence[Table]:
        """Make the tables that are no `layouts`; none for a board without questions of this benchmark."""
        return ()

    def summary_note(self, board: Board) -> str:
        """Return what the caption of the summary must add for questions of this benchmark, "" for nothing."""
        return ""

    def files(self, board: Board, runs: Sequence[BoardRun]) -> Mapping[str, str]:
        """Return further files of `vgbench compare` by name, such as a table in the form of the paper's own code."""
        return {}

    def score_case(self, row: Mapping[str, Any]) -> ScoredCase:
        """Score one case of a file for `vgbench compare --cases`.

        Raises:
            CaseError: the case makes no sense.
        """
        from vgbench_gen.evaluation.cases import score_case

        return score_case(row)


benchmarks: Registry[Benchmark] = Registry("benchmark", "vgbench_gen.evaluation.benchmarks")
DEFAULT_BENCHMARK = "vgbench"


def find_benchmark(name: str) -> Benchmark | None:
    """Return the benchmark whose scoring rules own a name of `Item.benchmark`; None where nobody does."""
    return next((one for one in benchmarks.values() if one.scoring.owns(name)), None)


def choose_rows(
    rows: Iterator[QuestionRow], tasks: Sequence[str], types: Sequence[str], limit: int, sources: Sequence[str] = ()
) -> list[QuestionRow]:
    """Rows of these tasks, question types and sources (all where empty), in order; `limit` of them, 0 for all.

    A limit draws whole truths (questions of one `group_id`), so that twins and pairs stay together, by a hash of their
    names: a larger limit adds questions and drops none, and what was answered stays of use.
    """
    from vgbench_gen.core.rng import hash_stably

    found = [
        row
        for row in rows
        if (not tasks or row.task in tasks)
        and (not types or row.question_type in types)
        and (not sources or row.source in sources)
    ]
    if not limit or len(found) <= limit:
        return found
    found.sort(key=lambda row: (hash_stably("limit", row.group), row.row))
    return sorted(found[:limit])
