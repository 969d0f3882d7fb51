"""Makes the images of one scan again and compares each with its published checksums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.json_text import parse_json, read_json
from vgbench_gen.core.rng import digest_bytes, format_canonical_json
from vgbench_gen.core.types import ColorArray
from vgbench_gen.executors import WorkerDied
from vgbench_gen.publish.redact_pixels import compute_pixels_digest, look
from vgbench_gen.scenes.base import Frame, SceneRef
from vgbench_gen.scenes.opening import lay_to_scene, open_scene
from vgbench_gen.scenes.view import make_delivered_color
from vgbench_gen.store.files import write_bytes
from vgbench_gen.store.media import NAME, MediaStore
from vgbench_gen.store.pictures import Picture, decode, list_codec_versions, render_from

Outcome = Literal["exact", "same_pixels", "close", "unchecked", "different", "missing"]
USABLE: tuple[Outcome, ...] = ("exact", "same_pixels", "close", "unchecked")
# The most bits of a 64-bit perceptual hash that may differ between two copies of one picture. On 628 images of real
# captures, another encoder and quality or noise of three grey levels changed at most 2 bits; two neighboring keyframes
# differed in at least 4.
LOOK_BITS = 2
_MAX_RECORD_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Want:
    """A published image that has to be made from a frame of a scan."""

    name: str
    """Published media name; it holds the checksum of the encoded bytes."""
    frame_id: str
    picture: Picture
    """How the image is made from the frame."""
    base_size: tuple[int, int]
    """(width, height) in pixels to which the frame is scaled before the image is made."""
    pixels: str
    """Checksum of the published pixels; "" if unknown."""
    look: str
    """Perceptual hash of the published image, 16 hexadecimal digits; "" if unknown."""
    base_pixels: str
    """Checksum of the scaled frame's pixels; "" if unknown."""

    @classmethod
    def of(cls, file: Mapping[str, Any]) -> Want:
        """Read an entry of `image_files`.

        Raises:
            DatasetError, KeyError, TypeError, ValueError: the entry is damaged.
        """
        if not NAME.fullmatch(file["name"]):
            raise ValueError(f"{str(file['name'])[:80]!r} is no media name")
        picture = Picture.from_json({"base": file["base"], "ops": parse_json(file["ops"])})
        size = int(file["base_width"]), int(file["base_height"])
        return cls(
            file["name"], file["frame_id"], picture, size, file["pixels"], file["look"], file.get("base_pixels", "")
        )


@dataclass(frozen=True, slots=True)
class HydratedImage:
    """The result of making one image again."""

    outcome: Outcome
    """How the image compares with the published one: "exact" (same bytes), "same_pixels" (other bytes that decode to
    the same pixels), "close" (same picture by its perceptual hash), "unchecked" (other bytes, and no published checksum
    to compare), "different" (another picture, which is not used) or "missing"."""
    name: str = ""
    """Media name of the new image; "" if the image cannot be used."""
    why: str = ""
    """Reason for "different" or "missing"; "" otherwise."""


@dataclass(frozen=True, slots=True)
class SceneJob:
    """One scan and the images to make from it; can be sent to another process."""

    ref: SceneRef
    wants: tuple[Want, ...]
    media: Path
    record: Path
    """JSON file that lists the images whose bytes differ from the published ones."""


@dataclass(slots=True)
class SceneResult:
    """The images made from one scan."""

    made: dict[str, HydratedImage] = field(default_factory=dict)
    """Published name of an image -> result."""
    bases: dict[str, bool] = field(default_factory=dict)
    """Name of a scaled frame with a published checksum -> whether its pixels have that checksum."""


def make_scene(job: SceneJob) -> SceneResult:
    """Make the images of one scan that are not in the media store yet; errors of the scan are returned, not raised."""
    result = SceneResult()
    media, known = MediaStore(job.media), _read_record(job.record)
    todo: dict[str, dict[tuple[int, int], list[Want]]] = defaultdict(lambda: defaultdict(list))
    for want in job.wants:
        before = known.get(want.name)
        if media.has(want.name):
            result.made[want.name] = HydratedImage("exact", want.name)
        elif before is not None and media.has(before.name):
            result.made[want.name] = before
        else:
            todo[want.frame_id][want.base_size].append(want)
    if todo:
        problem = ""
        try:
            with lay_to_scene(job.ref), open_scene(job.ref) as scene, media.batch():
                # Frames go in the scan's order, because going back in a video decodes it from its start. A frame is
                # decoded once per size.
                for frame in scene.frames:
                    for base_size, wants in todo.pop(frame.id, {}).items():
                        _make_frame(frame, base_size, wants, media, result)
        except VGBenchError as error:
            problem = str(error)
        for frame_id, by_size in todo.items():
            why = problem or f"frame {frame_id} is not among the usable frames of this copy of the scan"
            result.made |= {want.name: HydratedImage("missing", why=why) for want in chain(*by_size.values())}
    _write_record(job.record, result)
    return result


def make_lost_scene(job: SceneJob, error: WorkerDied) -> SceneResult:
    """The result of a scan whose worker process died twice."""
    made = {want.name: HydratedImage("missing", why=f"tried twice: {error}") for want in job.wants}
    return SceneResult(made)


def _make_frame(
    frame: Frame, base_size: tuple[int, int], wants: Sequence[Want], media: MediaStore, result: SceneResult
) -> None:
    try:
        color, original = make_delivered_color(frame, max(base_size))
    except (VGBenchError, OSError) as error:
        result.made |= {want.name: HydratedImage("missing", why=str(error)) for want in wants}
        return
    size = color.shape[1], color.shape[0]
    for want in wants:
        if want.base_pixels and want.picture.base not in result.bases:
            result.bases[want.picture.base] = compute_pixels_digest(color) == want.base_pixels
        if size != base_size:
            why = f"frame {frame.id} is {size[0]}x{size[1]} px, published from {base_size[0]}x{base_size[1]}"
            result.made[want.name] = HydratedImage("different", why=why)
        else:
            result.made[want.name] = _make(want, color, original or b"", media)


def _make(want: Want, color: ColorArray, original: bytes, media: MediaStore) -> HydratedImage:
    try:
        data = render_from(want.picture, color, original)
    except VGBenchError as error:  # a crop outside the image, so this is another frame
        return HydratedImage("different", why=str(error))
    outcome, bits = _compare_pixels(want, data)
    if outcome == "different":
        return HydratedImage(
            outcome, why=f"frame {want.frame_id} looks different ({bits} of 64 bits): another scan or frame"
        )
    return HydratedImage(outcome, media.put(data, "jpg"))


def _compare_pixels(want: Want, data: bytes) -> tuple[Outcome, int]:
    """(outcome, differing bits of the perceptual hash) of a new image and the published one."""
    if digest_bytes(data) == want.name.partition(".")[0]:
        return "exact", 0
    if want.pixels and compute_pixels_digest(decode(data)) == want.pixels:
        return "same_pixels", 0
    new_look = look(data)
    if not (want.look and new_look):
        return "unchecked", 0
    bits = (int(want.look, 16) ^ int(new_look, 16)).bit_count()
    return ("close" if bits <= LOOK_BITS else "different"), bits


def _read_record(path: Path) -> dict[str, HydratedImage]:
    """Images of an earlier run with the same codecs, by published name; empty if the record cannot be read."""
    try:
        stored = read_json(path, most_bytes=_MAX_RECORD_BYTES)
        if stored["made_with"] != list_codec_versions():
            return {}
        made = {name: HydratedImage(outcome, made) for name, (outcome, made) in stored["images"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {
        name: image
        for name, image in made.items()
        if image.outcome in get_args(Outcome) and isinstance(image.name, str) and NAME.fullmatch(image.name)
    }


def _write_record(path: Path, result: SceneResult) -> None:
    images = {name: [made.outcome, made.name] for name, made in result.made.items() if made.name}
    write_bytes(path, format_canonical_json({"made_with": list_codec_versions(), "images": images}).encode())
