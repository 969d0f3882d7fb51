"""Images of one scan made again, and each compared with the checksums that were published for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
# Of 64 bits. On 628 images of real captures another encoder at another quality, or noise of three grey levels, turned
# at most 2; from one keyframe to the next at least 4 turned.
LOOK_BITS = 2
_MAX_RECORD_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Want:
    """An image that is to be made from a frame of a scan."""

    name: str
    """Media name under which the image was published; it holds the checksum of its bytes."""
    frame_id: str
    """Frame of the scan from which the image is made."""
    picture: Picture
    """How the image is made from that frame."""
    base_size: tuple[int, int]
    """(width, height) in pixels of the frame at the size from which the image is made."""
    pixels: str
    """Checksum of the published image's pixels; "" where it is unknown."""
    look: str
    """Perceptual hash of the published image, 16 hexadecimal digits; "" where it is unknown."""
    base_pixels: str
    """Checksum of the frame's pixels at that size; "" where it is unknown."""

    @classmethod
    def of(cls, file: Mapping[str, Any]) -> Want:
        """The image that an entry of `image_files` describes.

        Raises:
            DatasetError, KeyError, TypeError, ValueError: it is damaged.
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
    """What became of a wanted image."""

    outcome: Outcome
    """How the image compares with the published one: "exact" (the published bytes), "same_pixels" (other bytes that
    decode to the same), "close" (the same picture by its perceptual hash), "unchecked" (other bytes, and nothing was
    published to compare them by), "different" (another picture, which is not used) or "missing"."""
    name: str = ""
    """Media name of the image that was made; "" where nothing can be used."""
    why: str = ""
    """Why the image is "different" or "missing"; "" for other outcomes."""


@dataclass(frozen=True, slots=True)
class SceneJob:
    """One scan and the images wanted of it. It can be sent to another process."""

    ref: SceneRef
    wants: tuple[Want, ...]
    media: Path
    record: Path
    """File that remembers which images were made with other bytes than the published ones."""


@dataclass(slots=True)
class SceneResult:
    """What one scan gave."""

    made: dict[str, HydratedImage] = field(default_factory=dict)
    """Published name of an image -> what became of it."""
    bases: dict[str, bool] = field(default_factory=dict)
    """Name of a frame's image at one size -> whether its pixels are the published ones, for those whose checksum was
    published."""
    problem: str = ""
    """What was wrong with the scan as a whole; "" where nothing was."""


def make_scene(job: SceneJob) -> SceneResult:
    """Make all wanted images of one scan that are not there yet; never raises for what is wrong with the scan."""
    result = SceneResult()
    media, known = MediaStore(job.media), _read_record(job.record)
    todo: dict[str, list[Want]] = defaultdict(list)
    for want in job.wants:
        before = known.get(want.name)
        if media.has(want.name):
            result.made[want.name] = HydratedImage("exact", want.name)
        elif before is not None and media.has(before.name):
            result.made[want.name] = before
        else:
            todo[want.frame_id].append(want)
    if todo:
        try:
            with lay_to_scene(job.ref), open_scene(job.ref) as scene, media.batch():
                # In the scan's own order: going back in a video decodes it from its start.
                for frame in scene.frames:
                    if frame.id in todo:
                        _make_frame(frame, todo.pop(frame.id), media, result)
        except VGBenchError as error:
            result.problem = str(error)
        for frame_id, wants in todo.items():
            why = result.problem or f"frame {frame_id} is not among the usable frames of this copy of the scan"
            result.made |= {want.name: HydratedImage("missing", why=why) for want in wants}
    _write_record(job.record, result)
    return result


def make_lost_scene(job: SceneJob, error: WorkerDied) -> SceneResult:
    """The result of a scan whose worker died twice."""
    made = {want.name: HydratedImage("missing", why=f"tried twice: {error}") for want in job.wants}
    return SceneResult(made, problem=str(error))


def _make_frame(frame: Frame, wants: Sequence[Want], media: MediaStore, result: SceneResult) -> None:
    """All wanted images of one frame, which is decoded once for each size that they start from."""
    by_size: dict[tuple[int, int], list[Want]] = defaultdict(list)
    for want in wants:
        by_size[want.base_size].append(want)
    for base_size, alike in by_size.items():
        _make_alike(frame, base_size, alike, media, result)


def _make_alike(
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
    except VGBenchError as error:  # an operation outside the image: not the frame it was written for
        return HydratedImage("different", why=str(error))
    outcome, bits = _compare_pixels(want, data)
    if outcome == "different":
        return HydratedImage(
            outcome, why=f"frame {want.frame_id} looks different ({bits} of 64 bits): another scan or frame"
        )
    return HydratedImage(outcome, media.put(data, "jpg"))


def _compare_pixels(want: Want, data: bytes) -> tuple[Outcome, int]:
    """How an image compares with what was published, and by how many bits it looks different."""
    if digest_bytes(data) == want.name.partition(".")[0]:
        return "exact", 0
    if want.pixels and compute_pixels_digest(decode(data)) == want.pixels:
        return "same_pixels", 0
    here = look(data)
    if not (want.look and here):
        return "unchecked", 0
    bits = (int(want.look, 16) ^ int(here, 16)).bit_count()
    return ("close" if bits <= LOOK_BITS else "different"), bits


def _read_record(path: Path) -> dict[str, HydratedImage]:
    """Images made before with these codecs under other names than the published; a record is only a memory."""
    try:
        stored = read_json(path, most_bytes=_MAX_RECORD_BYTES)
        if stored["made_with"] != list_codec_versions():
            return {}
        made = {name: HydratedImage(outcome, made) for name, (outcome, made) in stored["images"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {
        name: one
        for name, one in made.items()
        if one.outcome in get_args(Outcome) and isinstance(one.name, str) and NAME.fullmatch(one.name)
    }


def _write_record(path: Path, result: SceneResult) -> None:
    images = {name: [made.outcome, made.name] for name, made in result.made.items() if made.name}
    write_bytes(path, format_canonical_json({"made_with": list_codec_versions(), "images": images}).encode())
