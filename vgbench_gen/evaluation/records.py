"""Lines of a log of replies: a header says who is asked and how, and every other line is one reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field, PlainSerializer, ValidationError, field_validator

from vgbench_gen.core.config import Config, describe_problem
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.evaluation.json_lines import REMEDY
from vgbench_gen.store.files import dataset_error

DRAWING = "visual-cot-image"  # stage of what is no answer but was made for one
_MOST = 1 << 53  # numbers of a reply that go into sums; beyond, floats no longer count
_NOT_SETTINGS = ("program", "task", "prompt_set")  # which questions, and what the key says
_IMAGE_SETTINGS = ("long_side_px", "first_image", "video_frames", "visual_cot", "image_model")
Number = Annotated[int, Field(ge=-_MOST, le=_MOST)]
Count = Annotated[int, Field(ge=0, le=_MOST)]
Amount = Annotated[float, Field(ge=-_MOST, le=_MOST)]


class ReplyKey(NamedTuple):
    """What a reply is to: one question in one order of its options, asked in one way for one time."""

    id: str
    """The question."""
    rotation: Number = 0
    """By how many places its options were moved up; 0 for the order in which it was built."""
    epoch: Number = 0
    """The number of the repeat, from 0."""
    stage: str = ""
    """"" for the question itself, "blind" without its images, "wrong-images" with another question's, and so on."""
    prompt_set: str = "paper"
    """The prompt set whose words were sent."""
    settings: str = ""
    """Digest of how it was asked (`Header.digest`); "" for drawings, which do not depend on it."""


KeyField = Annotated[ReplyKey, PlainSerializer(lambda key: key._asdict())]


class ReplyLine(Config):
    """One reply, or a request that failed."""

    key: KeyField
    benchmark: str
    """The benchmark of the question, as in `Item.benchmark`."""
    model: str
    """Who replied, by the name that the server gave."""
    request_digest: str
    """The digest of everything that was asked, without the model (`prompting.Asked.digest`)."""
    response: str | None
    """The whole text of the reply; None where the request failed."""
    images: tuple[Mapping[str, Any], ...] = ()
    """The images as the model saw them, in order, each with its "name" and, where known, "tag" and "size_px"."""
    finish_reason: str = ""
    """Why the model stopped, as its server says it: "stop", "length", "content_filter"."""
    usage: Mapping[str, Count] = {}
    """How many tokens of each kind the request took."""
    cost_usd: Amount | None = None
    """What the request cost; None where no price is known."""
    latency_s: Amount = 0.0
    """How long the reply took."""
    error: str = ""
    """The kind and the message of a failure; "" where the request did not fail."""
    time: Amount = 0.0
    """When the reply came, in seconds since 1970."""

    @property
    def failed(self) -> bool:
        """Whether there is no reply, so that it is asked again."""
        return bool(self.error) or self.response is None


class Header(Config):
    """What the replies below it are about."""

    dataset: str
    """The fingerprint of the dataset."""
    benchmark: str
    """The name of the benchmark."""
    spec: str
    """Who was asked, as given on the command line."""
    model: str
    """Who was asked, by the model's name."""
    settings: Mapping[str, Any] = {}
    """The settings of the requests (temperature, max_tokens, ...) and of the run (prompt set, image limits)."""
    code: str = ""
    """The version of this package."""

    @field_validator("spec", "model")
    @classmethod
    def _set_on_one_line(cls, name: str) -> str:
        return name if name.isprintable() else make_one_line(name)

    @property
    def digest(self) -> str:
        """Of how each question was asked, without what `ReplyKey` says already."""
        sent = self.settings.get("settings")
        if not isinstance(sent, dict):
            content = {name: value for name, value in self.settings.items() if name not in _NOT_SETTINGS}
        else:
            content = {name: value for name, value in sent.items() if name not in ("system", "stage")}
            content |= {name: self.settings.get(name) or 0 for name in _IMAGE_SETTINGS}
            if self.settings.get("wrong_images") or self.settings.get("shots") or self.spec.startswith("baseline:"):
                content["drawn"] = self.settings.get("seed", 0)
            if self.settings.get("setup"):
                content["setup"] = self.settings["setup"]
        return hash_stably(json.dumps(content, sort_keys=True), size=8)

    @property
    def kind(self) -> tuple[str, str] | None:
        """(stage, prompt set) of what its run asked; None where it does not say."""
        sent = self.settings.get("settings")
        stage = sent.get("stage") if isinstance(sent, dict) else None
        return None if stage is None else (str(stage), str(self.settings.get("prompt_set")))


RecordT = TypeVar("RecordT", bound=Config)


def parse_record(model: type[RecordT], data: bytes, where: object) -> RecordT:
    """The record of a line.

    Raises:
        DatasetError: it holds another one, or is damaged.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        problem = describe_problem(model, error.errors(include_url=False)[0])
        raise dataset_error(
            where, f"no {model.__name__} ({problem})", "a line that `vgbench eval` wrote", REMEDY
        ) from None
