"""What asking would cost, before anything is asked."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.backends._budget import find_price
from vgbench_gen.backends.base import Backend, Usage
from vgbench_gen.backends.spec import BackendOptions
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.evaluation.prompting import VISUAL_COT_IMAGE, Asked
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.replies import FOLDER, AnsweredRequests, name_replies_file, read_answered
from vgbench_gen.evaluation.reply_files import find_source_replies
from vgbench_gen.evaluation.runner import require_images

_SAMPLE = 64  # requests whose images are opened; the others are taken for alike


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a model would be sent."""

    spec: str
    """Who would be asked."""
    requests: int
    """How many requests have no reply so far."""
    kept: int
    """How many were answered before."""
    images: int
    """How many images would be sent."""
    prompt_tokens: int
    """About how many tokens would be sent."""
    most_completion: int
    """How many tokens would come back if every reply were as long as it may be."""
    usd: tuple[float, float] | None
    """The price if replies are 20 tokens long, and if they are as long as they may be; None where no price is known."""
    drawings: int = 0
    """How many drawings would be made before; they are counted in nothing else."""


def estimate(
    spec: str, backend: Backend, questions: Questions, options: BackendOptions, folder: Path | None = None
) -> Estimate:
    """Requests, tokens and money of what one model was not asked yet; nothing is sent.

    Tokens are counted as the budget counts them: three bytes of text each, 700 pixels each, and 100 for every image.

    Raises:
        DatasetError: the dataset or the model's replies cannot be read, or images are missing.
    """
    settings = questions.options.settings(backend.model)
    require_images(questions.source, questions.options, questions.rows)
    kept = read_answered(name_replies_file(folder or questions.source.folder / FOLDER, backend.spec))
    source = None if folder else find_source_replies(questions.source.folder)
    taken = AnsweredRequests() if source is None else read_answered(name_replies_file(source[0], backend.spec))
    requests = images = text_tokens = old = 0
    sampled: list[tuple[str, Asked]] = []
    drawn: set[tuple[str, int]] = set()
    two_stages, keys = bool(questions.options.visual_cot), {key for key, _ in kept.at}
    for _, asked in questions.walk(settings):
        # In two stages the digest hangs on a drawing that only asking would look for.
        known = asked.key in keys if two_stages else kept.find(asked.key, asked.digest) is not None
        if known or taken.find(asked.key, asked.digest) is not None:
            old += 1
            continue
        requests += 1
        images += len(asked.images) + two_stages
        if two_stages and asked.key._replace(rotation=0, stage=VISUAL_COT_IMAGE) not in keys:
            drawn.add((asked.key.id, asked.key.epoch))
        text_tokens += len((settings.system + asked.text).encode()) // 3 + 16
        if asked.images:
            sampled.append((hash_stably("estimate", *map(str, asked.key)), asked))
            if len(sampled) > 8 * _SAMPLE:
                sampled = sorted(sampled, key=lambda one: one[0])[:_SAMPLE]
    seen = [_count_image_tokens(asked, questions) for _, asked in sorted(sampled, key=lambda one: one[0])[:_SAMPLE]]
    per_image = sum(tokens for tokens, _ in seen) / max(1, sum(count for _, count in seen))
    prompt = text_tokens + round(per_image * images)
    most = requests * (settings.max_tokens or 0)
    provider = str(getattr(backend, "provider", spec.partition(":")[0]))
    price = find_price(provider, backend.model, options.prices)
    short = min(most, 20 * requests)
    usd = None if price is None else (price.usd(Usage(prompt, short)), price.usd(Usage(prompt, most)))
    return Estimate(spec, requests, old, images, prompt, most, usd, len(drawn))


def _count_image_tokens(asked: Asked, questions: Questions) -> tuple[int, int]:
    """(tokens, images) of one request, from the headers of its images."""
    total = 0
    for shown in asked.images:
        width, height = read_image_size_px(questions.source.image(shown.item, shown.k))
        scale = min(1.0, asked.long_side_px / max(width, height)) if asked.long_side_px else 1.0
        total += int(width * height * scale**2) // 700 + 100
    return total, len(asked.images)


def read_image_size_px(source: bytes | Path) -> tuple[int, int]:
    """(width, height) from the header."""
    from PIL import Image

    with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=("JPEG", "PNG")) as image:
        return image.size
