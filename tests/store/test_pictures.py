from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from scipy.ndimage import map_coordinates

from tests.store.examples import textured
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Camera, ColorArray
from vgbench_gen.geometry import cameras, homography, projection
from vgbench_gen.store import pictures
from vgbench_gen.store.drawing import COLORS, CROSSHAIR, SHAPES, StrokeSizes
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.pictures import Picture, apply, decode, encode_jpeg, read_image_size, reads_inside, render

BASE = "0" * 32 + ".jpg"
CROP = {"op": "crop_resize", "rect": [40, 30, 400, 300], "size": [600, 450]}
H_WARP = [0.9, 0.1, 12.0, -0.08, 1.05, 7.5, 1e-4, -5e-5, 1.0]
WARP = {"op": "warp", "H": H_WARP, "rect": [60, 35, 400, 300], "size": [400, 300]}
POINT = {"op": "point", "uv": [320, 240], "color": "orange", "shape": "crosshair"}
REGION = {"op": "region", "rect": [100, 80, 180, 150], "color": "blue"}


def blob(width: int, height: int, uv: npt.ArrayLike, sigma_px: float = 4.0) -> ColorArray:
    u, v = np.asarray(uv, dtype=np.float64)
    y, x = np.mgrid[:height, :width]
    spot = 240 * np.exp(-((x - u) ** 2 + (y - v) ** 2) / (2 * sigma_px**2))
    return np.repeat(np.rint(spot)[..., None], 3, axis=2).astype(np.uint8)


def centroid(image: ColorArray) -> npt.NDArray[np.float64]:
    weight = image[..., 0].astype(np.float64)
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    return np.array([(x * weight).sum() / weight.sum(), (y * weight).sum() / weight.sum()])


def changed(before: ColorArray, after: ColorArray) -> npt.NDArray[np.bool_]:
    return np.asarray((before != after).any(axis=2))


@pytest.mark.parametrize("size", [(600, 450), (200, 150), (400, 300), (500, 240)])
def test_a_crop_follows_the_camera_model(size: tuple[int, int]) -> None:
    camera = Camera(np.array([[520.0, 0, 317.3], [0, 525.0, 241.1], [0, 0, 1]]), 640, 480)
    point = np.array([[0.13, -0.21, 2.4]])
    (uv,), _ = projection.project(camera, point)
    image = blob(640, 480, uv)
    op = {"op": "crop_resize", "rect": [40, 30, 400, 300], "size": list(size)}
    after = cameras.resize_camera(cameras.crop_camera(camera, 40, 30, 400, 300), *size)
    expected, _ = projection.project(after, point)
    result = apply(Picture(BASE, (op,)), image)
    assert result.shape == (size[1], size[0], 3)
    np.testing.assert_allclose(centroid(result), expected[0], atol=0.05)
    assert pictures.find_size(Picture(BASE, (op,)), (640, 480)) == size


def test_shrinking_averages() -> None:
    image = np.zeros((480, 640, 3), np.uint8)
    image[::2] = 200
    result = apply(Picture(BASE, ({"op": "crop_resize", "rect": [0, 0, 640, 480], "size": [320, 240]},)), image)
    assert np.abs(result[4:-4].astype(int) - 100).max() <= 3


@pytest.mark.parametrize("shown", [1.0, 0.7, 0.4, 0.25])
@pytest.mark.parametrize("turn_deg", [0, 25])
def test_crops_and_warps_have_one_sharpness(shown: float, turn_deg: int) -> None:
    """A spot as sharp as frames are has the same spread in the target, whatever the target shrinks it to."""
    image = np.full((480, 640), 0.0, np.float32)
    y, x = np.mgrid[:480, :640]
    image += 200 * np.exp(-((x - 321) ** 2 + (y - 239) ** 2) / 2 / pictures.FRAME_SPREAD_PX**2).astype(np.float32)
    c, s = shown * np.cos(np.radians(turn_deg)), shown * np.sin(np.radians(turn_deg))
    middle = np.array([320.0, 240.0])
    linear = np.array([[c, -s], [s, c]])
    matrix = np.eye(3)
    matrix[:2, :2], matrix[:2, 2] = linear, (60.0, 60.0) - linear @ middle
    drawn = pictures.resample(image, matrix, (121, 121)).astype(np.float64)
    v, u = np.mgrid[:121, :121]
    weight = drawn.sum()
    mean = (drawn * u).sum() / weight, (drawn * v).sum() / weight
    spread = np.sqrt([(drawn * (u - mean[0]) ** 2).sum() / weight, (drawn * (v - mean[1]) ** 2).sum() / weight])
    np.testing.assert_allclose(mean, homography.apply(matrix, np.array([[321.0, 239.0]]))[0], atol=0.05)
    np.testing.assert_allclose(spread, pictures.SPREAD_PX, atol=0.06)


def test_a_warp_maps_source_to_target() -> None:
    H = np.array(WARP["H"]).reshape(3, 3)
    for uv in ([190.0, 140.0], [300.4, 250.7]):
        result = apply(Picture(BASE, (WARP,)), blob(640, 480, uv))
        # The spot's own centre moves by less than this under the local change of scale.
        np.testing.assert_allclose(centroid(result), homography.apply(H, np.array([uv]) - [60, 35])[0], atol=0.06)


def test_a_warp_draws_on_what_lies_around_its_crop() -> None:
    image = np.asarray(cv2.GaussianBlur(textured(640, 480), (0, 0), 4), dtype=np.uint8)  # too smooth to lose anything
    H = np.array(WARP["H"]).reshape(3, 3)
    result = apply(Picture(BASE, (WARP,)), image)
    y, x = np.mgrid[:300, :400].astype(np.float64)
    source = homography.apply(np.linalg.inv(H), np.stack([x, y], axis=-1).reshape(-1, 2)).reshape(300, 400, 2)
    assert (source < 0).any(axis=-1).sum() > 1000  # seen all the same, left of and above the crop
    source += [60, 35]
    oracle = np.stack(
        [
            map_coordinates(image[..., c].astype(np.float64), [source[..., 1], source[..., 0]], order=1, cval=0.0)
            for c in range(3)
        ],
        axis=-1,
    )
    assert np.abs(result - oracle)[4:-4, 4:-4].max() <= 4.0


def test_a_warp_that_draws_on_what_lies_outside_is_refused() -> None:
    def shift(x: float, y: float, origin: tuple[int, int] = (0, 0)) -> dict[str, Any]:
        return {"op": "warp", "H": [1, 0, x, 0, 1, y, 0, 0, 1], "rect": [*origin, 60, 40], "size": [60, 40]}

    image = np.full((100, 160, 3), 255, np.uint8)
    for inside in (shift(0, 0), shift(-100, -60), shift(0, 0, (100, 60)), shift(20, 10, (20, 10)), shift(-100, 0)):
        assert apply(Picture(BASE, (inside,)), image).min() == 255
        assert reads_inside(inside, (160, 100))
    beyond = {"op": "warp", "H": [1, 0, 0, 0, 1, 0, 0.02, 0, 1], "rect": [0, 0, 60, 40], "size": [60, 40]}
    outside = (shift(0.5, 0), shift(0, 0.5), shift(-100.5, 0), shift(0, -60.5), shift(0, 0, (101, 60)), beyond)
    for op in outside:
        assert not reads_inside(op, (160, 100))
        with pytest.raises(DatasetError, match=r"warp .* on an image of 160x100 px"):
            apply(Picture(BASE, (op,)), image)


def test_operations_run_in_order() -> None:
    image = textured(640, 480)
    both = apply(Picture(BASE, (CROP, WARP, POINT)), image)
    one = apply(Picture(BASE, (WARP,)), apply(Picture(BASE, (CROP,)), image))
    np.testing.assert_array_equal(both, apply(Picture(BASE, (POINT,)), one))
    assert both.shape == (300, 400, 3)


def test_a_picture_without_operations_passes_through(media: MediaStore) -> None:
    data = encode_jpeg(textured(64, 48))
    name = media.put(data, "jpg")
    assert render(Picture(name), media) == data
    assert PictureCache(media.root / "c.sqlite", media).name(Picture(name)) == name
    png = cv2.imencode(".png", textured(64, 48))[1].tobytes()
    shown = render(Picture(media.put(png, "png")), media)
    assert shown == encode_jpeg(decode(png))


def test_exif_never_turns_a_picture(media: MediaStore) -> None:
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(textured(64, 48)).save(buffer, "JPEG", quality=95, exif=exif)
    data = buffer.getvalue()
    shown = render(Picture(media.put(data, "jpg")), media)
    assert read_image_size(shown) == read_image_size(data) == (64, 48)
    assert decode(shown).shape == decode(data).shape == (48, 64, 3)
    assert Image.open(io.BytesIO(shown)).getexif().get(0x0112, 1) == 1


def test_rendering_is_deterministic_and_encodes_once(media: MediaStore) -> None:
    data = encode_jpeg(textured(640, 480))
    picture = Picture(media.put(data, "jpg"), (POINT, REGION))
    shown = render(picture, media)
    assert shown == render(Picture.from_json(json.loads(json.dumps(picture.to_json()))), media)
    assert shown == encode_jpeg(apply(picture, decode(data)))
    # OpenCV as an independent encoder: quality 95, channels in the right order.
    bgr = cv2.cvtColor(apply(picture, decode(data)), cv2.COLOR_RGB2BGR)
    assert shown == cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 95])[1].tobytes()
    np.testing.assert_array_equal(decode(data), np.asarray(Image.open(io.BytesIO(data))))


@pytest.mark.parametrize("shape", [*SHAPES, CROSSHAIR])
@pytest.mark.parametrize("size", [(160, 120), (640, 480), (1024, 768)])
@pytest.mark.parametrize("place", ["middle", "corner"])
def test_a_marker_leaves_its_point_open(size: tuple[int, int], place: str, shape: str) -> None:
    width, height = size
    image = textured(width, height)
    u, v = (width // 2, height // 2) if place == "middle" else (width - 1, 0)
    result = apply(Picture(BASE, (POINT | {"uv": [u, v], "shape": shape},)), image)
    y, x = np.mgrid[:height, :width]
    distance = np.hypot(x - u, y - v)
    touched = changed(image, result)
    assert not touched[distance <= 3].any()
    reach = StrokeSizes.of(width, height).reach
    assert touched[distance <= reach].any()
    assert not touched[distance > reach].any()
    if place == "middle":  # the same from its sides: the centre of the mark is the point itself
        mark = touched[v - 30 : v + 31, u - 30 : u + 31]
        for other in (mark[:, ::-1],) if shape == "triangle" else (mark[::-1], mark[:, ::-1], mark.T):
            assert (mark == other).mean() > 0.99  # a pixel may happen to have the stroke's colour already


@pytest.mark.parametrize("shape", [*SHAPES, CROSSHAIR])
@pytest.mark.parametrize("uv", [(0, 0), (159, 119), (3, 60), (80, 5)])
def test_a_marker_at_the_rim_is_the_part_of_a_whole_one(shape: str, uv: tuple[int, int]) -> None:
    """Drawn in the middle of a larger image of the same stroke sizes, it has the same pixels."""
    image, pad = textured(160, 120), 60
    padded = np.pad(image, ((pad, pad), (pad, pad), (0, 0)), mode="edge")
    assert StrokeSizes.of(160, 120) == StrokeSizes.of(*padded.shape[1::-1])
    mark = {"op": "point", "uv": list(uv), "color": "blue", "shape": shape}
    whole = apply(Picture(BASE, ({**mark, "uv": [uv[0] + pad, uv[1] + pad]},)), padded)
    drawn = apply(Picture(BASE, (mark,)), image)
    assert np.array_equal(drawn, whole[pad:-pad, pad:-pad])
    assert not np.array_equal(drawn, image)


def test_shapes_are_what_they_are_called() -> None:
    """Of the figures that OpenCV fits around the coloured stroke, the one of its name is filled."""
    for shape in SHAPES:
        image = apply(Picture(BASE, (POINT | {"uv": [512, 384], "shape": shape},)), np.zeros((768, 1024, 3), np.uint8))
        colored = np.abs(image.astype(int) - np.array(COLORS["orange"])).max(axis=2) < 30
        points = np.argwhere(colored)[:, ::-1].astype(np.float32) - [512, 384]
        turned = points @ np.array([[1, -1], [1, 1]]) / np.sqrt(2)
        area = cv2.contourArea(cv2.convexHull(points.astype(np.float32)))
        around = {
            "circle": np.pi * cv2.minEnclosingCircle(points.astype(np.float32))[1] ** 2,
            "square": float(np.prod(np.ptp(points, axis=0))),
            "diamond": float(np.prod(np.ptp(turned, axis=0))),
            "triangle": cv2.minEnclosingTriangle(points.astype(np.float32)[:, None])[0],
        }
        filled = {name: area / whole for name, whole in around.items()}
        assert max(filled, key=lambda name: filled[name]) == shape, filled
        assert filled[shape] > 0.85
        assert (shape == "triangle") == (-points[:, 1].min() > 1.2 * points[:, 1].max())  # it points up


def test_crowded_points_all_stay_open() -> None:
    """The second point lies on the first one's outline, the third inside it."""
    image = textured(640, 480)
    uv = [(100, 100), (110, 100), (100, 104)]
    points = [POINT | {"uv": list(p), "shape": shape} for p, shape in zip(uv, SHAPES, strict=False)]
    first = changed(image, apply(Picture(BASE, (points[0],)), image))
    assert first[100, 110]
    touched = changed(image, apply(Picture(BASE, tuple(points)), image))
    y, x = np.mgrid[:480, :640]
    for u, v in uv:
        assert not touched[np.hypot(x - u, y - v) <= 3].any()


@pytest.mark.parametrize("rect", [[100, 80, 180, 150], [0, 0, 80, 90], [600, 400, 639, 479], [10, 10, 10, 10]])
def test_a_region_is_outlined_outside(rect: list[int]) -> None:
    image = textured(640, 480)
    x1, y1, x2, y2 = rect
    touched = changed(image, apply(Picture(BASE, (REGION | {"rect": rect},)), image))
    assert not touched[y1 : y2 + 1, x1 : x2 + 1].any()
    around = np.zeros_like(touched)
    around[max(y1 - 1, 0) : y2 + 2, max(x1 - 1, 0) : x2 + 2] = True
    around[y1 : y2 + 1, x1 : x2 + 1] = False
    assert touched[around].mean() > 0.95


def test_overlapping_regions_stay_rectangles() -> None:
    image = textured(640, 480)
    one, two = REGION, REGION | {"rect": [150, 120, 260, 240]}
    touched = changed(image, apply(Picture(BASE, (one, two)), image))
    for x1, y1, x2, y2 in ([100, 80, 180, 150], [150, 120, 260, 240]):
        for band in (touched[y1 - 1, x1 : x2 + 1], touched[y2 + 1, x1 : x2 + 1], touched[y1 : y2 + 1, x1 - 1]):
            assert band.mean() > 0.9


def test_every_colour_shows_on_any_ground() -> None:
    for ground in (0, 128, 255):
        for color, rgb in COLORS.items():
            image = np.full((480, 640, 3), ground, np.uint8)
            ops = (POINT | {"color": color}, REGION | {"color": color})
            shown = decode(encode_jpeg(apply(Picture(BASE, ops), image))).reshape(-1, 3).astype(int)
            near = np.abs(shown - np.array(rgb)).max(axis=1) < 40
            assert near.sum() > 300
            assert (np.abs(shown - ground).max(axis=1) > 100).sum() > 400


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"base": BASE},
        {"base": BASE, "ops": [], "more": 1},
        {"base": "../x.jpg", "ops": []},
        {"base": 3, "ops": []},
        {"base": BASE, "ops": {}},
        {"base": BASE, "ops": [3]},
        {"base": BASE, "ops": [{"op": "exec"}]},
        {"base": BASE, "ops": [{"op": ["point"]}]},
        {"base": BASE, "ops": [POINT | {"size": [1, 1]}]},
        {"base": BASE, "ops": [{k: v for k, v in POINT.items() if k != "shape"}]},
        {"base": BASE, "ops": [REGION | {"label": "1"}]},
        {"base": BASE, "ops": [POINT | {"uv": [1.5, 2]}]},
        {"base": BASE, "ops": [POINT | {"uv": [True, 2]}]},
        {"base": BASE, "ops": [POINT | {"uv": [10**9, 2]}]},
        {"base": BASE, "ops": [POINT | {"uv": "12"}]},
        {"base": BASE, "ops": [POINT | {"color": "red"}]},
        {"base": BASE, "ops": [POINT | {"color": ["orange"]}]},
        {"base": BASE, "ops": [POINT | {"shape": "star"}]},
        {"base": BASE, "ops": [POINT | {"shape": ["circle"]}]},
        {"base": BASE, "ops": [REGION | {"rect": [5, 5, 4, 9]}]},
        {"base": BASE, "ops": [CROP | {"size": [10**5, 10]}]},
        {"base": BASE, "ops": [CROP | {"size": [30_000, 30_000]}]},
        {"base": BASE, "ops": [CROP | {"size": [0, 10]}]},
        {"base": BASE, "ops": [CROP | {"rect": [-1, 0, 5, 5]}]},
        {"base": BASE, "ops": [WARP | {"H": [1.0] * 9}]},
        {"base": BASE, "ops": [WARP | {"H": [float("nan")] * 9}]},
        {"base": BASE, "ops": [WARP | {"H": [1, 0, 0, 0, 1, 0, 0, 0]}]},
        {"base": BASE, "ops": [POINT, CROP]},
        {"base": BASE, "ops": [POINT] * 65},
    ],
)
def test_only_exactly_a_picture_is_one(value: Any) -> None:
    with pytest.raises(DatasetError, match="measure its scene again"):
        Picture.from_json(value)
    if isinstance(value, dict) and set(value) == {"base", "ops"} and isinstance(value["ops"], list):
        with pytest.raises(ValueError):  # noqa: PT011 (each has its own words; the class is the contract)
            Picture(value["base"], tuple(value["ops"]))


def test_json_there_and_back() -> None:
    picture = Picture(BASE, (CROP, WARP, POINT, REGION))
    text = json.dumps(picture.to_json())
    assert Picture.from_json(json.loads(text)) == picture
    assert Picture.from_json(json.loads(text)).key() == picture.key()
    assert Picture(BASE, (CROP, WARP, REGION, POINT)).key() != picture.key()


@pytest.mark.parametrize(
    "op",
    [
        POINT | {"uv": [640, 0]},
        POINT | {"uv": [0, -1]},
        REGION | {"rect": [0, 0, 640, 5]},
        CROP | {"rect": [300, 0, 341, 9]},
    ],
)
def test_an_operation_outside_its_image(op: dict[str, Any]) -> None:
    with pytest.raises(DatasetError, match=r"640x480 px; expected"):
        apply(Picture(BASE, (op,)), textured(640, 480))


def test_hostile_image_bytes(media: MediaStore) -> None:
    for side, found in ((8_100, "8100x8100 px"), (60_000, "hundreds of megapixels")):
        huge = bytearray(encode_jpeg(textured(64, 48)))
        frame = huge.index(b"\xff\xc0")
        huge[frame + 5 : frame + 9] = side.to_bytes(2, "big") * 2
        with pytest.raises(DatasetError, match=f"{found}; expected at most 64 megapixels"):
            render(Picture(media.put(bytes(huge), "jpg"), (POINT,)), media)
    for data in (b"", b"\xff\xd8\xff", b"GIF89a" + bytes(50)):
        with pytest.raises(DatasetError, match=r"no image|an empty file"):
            decode(data)


def test_the_cache_remembers_and_forgives(media: MediaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = media.put(encode_jpeg(textured(640, 480)), "jpg")
    picture = Picture(base, (POINT,))
    expected = f"{digest_bytes(render(picture, media))}.jpg"
    count = 0

    def counted(p: Picture, m: MediaStore, load: Callable[[str], ColorArray]) -> bytes:
        nonlocal count
        count += 1
        return render(p, m, load)

    monkeypatch.setattr(pictures, "render", counted)
    path = tmp_path / "cache" / "pictures.sqlite"
    for _ in range(2):  # the second one as another run of the program would
        cache = PictureCache(path, media)
        assert [cache.name(picture) for _ in range(3)] == [expected] * 3
        cache.close()
    assert count == 1
    (media.root / expected[:2] / expected).unlink()
    assert PictureCache(path, media).name(picture) == expected
    assert count == 2
    for extra in path.parent.iterdir():
        extra.unlink()
    path.write_bytes(b"not a database" * 500)
    cache = PictureCache(path, media)
    assert [cache.name(picture) for _ in range(2)] == [expected] * 2
    assert count == 3
    cache.close()
    blocked = PictureCache(media.root / base[:2] / base / "below-a-file.sqlite", media)
    assert [blocked.name(picture) for _ in range(2)] == [expected] * 2
    assert count == 5


def test_all_pictures_of_a_base_decode_it_once(media: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    bases = [media.put(cv2.imencode(".png", textured(64, 48) + k)[1].tobytes(), "png") for k in range(3)]
    decoded: list[object] = []

    def note(data: bytes, where: object = "image") -> ColorArray:
        decoded.append(where)
        return decode(data, where)

    monkeypatch.setattr(pictures, "decode", note)
    cache = PictureCache(None, media)
    crop = {"op": "crop_resize", "rect": [1, 2, 40, 30], "size": [20, 15]}
    mark = {"op": "point", "uv": [9, 9], "color": "blue", "shape": "circle"}
    for ops in ((), (crop,), (mark,), (crop, mark)):
        for base in bases:
            picture = Picture(base, ops)
            assert media.get(cache.name(picture)) == encode_jpeg(apply(picture, decode(media.get(base))))
    assert decoded == bases


def test_the_cache_serves_several_processes(media: MediaStore, tmp_path: Path) -> None:
    base = media.put(encode_jpeg(textured(320, 240)), "jpg")
    code = """
import sys
from collections.abc import Callable
from pathlib import Path
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.pictures import Picture
cache = PictureCache(Path(sys.argv[1]), MediaStore(Path(sys.argv[2])))
point = {"op": "point", "color": "blue", "shape": "circle"}
print(*[cache.name(Picture(sys.argv[3], (point | {"uv": [10 * k, 20]},))) for k in range(25)])
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "c.sqlite"), str(media.root), base]
    root = Path(__file__).parents[2]
    workers = [subprocess.Popen(arguments, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    answers = {w.communicate(timeout=300)[0] for w in workers}
    assert all(w.returncode == 0 for w in workers)
    (names,) = answers
    assert len(set(names.split())) == 25


def test_a_real_frame(captures: Path, media: MediaStore) -> None:
    data = (captures / "scannet" / "scene9001_01" / "color" / "0.jpg").read_bytes()
    name = media.put(data, "jpg")
    assert render(Picture(name), media) == data
    shown = decode(render(Picture(name, (POINT, REGION)), media))
    before = decode(data)
    assert shown.shape == before.shape
    # Encoding again moves pixels a little; the content under the point and in the region is still there.
    for rows, columns in ((slice(237, 244), slice(317, 324)), (slice(84, 147), slice(104, 177))):
        difference = shown[rows, columns].astype(int) - before[rows, columns]
        assert np.abs(difference).mean() < 6


PLAN = {
    "op": "plan", "size": [80, 60], "colors": ["green", "blue"],
    "polygons": [[[10, 10], [30, 10], [20, 20], [30, 30], [10, 30]], [[50, 20], [70, 20], [60, 50]]],
}  # fmt: skip


def test_a_plan_takes_the_place_of_the_image() -> None:
    image = textured(200, 100, 1)
    drawn = apply(Picture(BASE, (PLAN,)), image)
    assert drawn.shape == (60, 80, 3)
    assert tuple(drawn[20, 27]) == COLORS["green"]  # the hull is filled, whatever the order of its points
    assert tuple(drawn[28, 60]) == COLORS["blue"]
    assert tuple(drawn[50, 40]) == (255, 255, 255)
    assert np.array_equal(drawn, apply(Picture(BASE, (PLAN,)), np.zeros_like(image)))
    assert pictures.find_size(Picture(BASE, (PLAN,)), (200, 100)) == (80, 60)


@pytest.mark.parametrize(
    ("ops", "said"),
    [
        ((CROP, PLAN), "nothing comes before it"),
        ((PLAN, POINT), "nothing comes before it"),
        ((PLAN | {"colors": ["green", "red"]},), "unknown color"),
        ((PLAN | {"colors": ["green"]},), "lists of one length"),
        ((PLAN | {"polygons": [[[1, 1], [2, 2]], [[1, 1], [2, 2], [3, 1]]]},), "3 to 64 points"),
        ((PLAN | {"polygons": [[[1, 1], [2, 2], [80, 1]]] * 2},), "outside of a drawing"),
        ((PLAN | {"polygons": [[[1, 1], [2, 2], [3.5, 1]]] * 2},), "integer pixels"),
        ((PLAN | {"size": [0, 60]},), "size 0x60"),
    ],
)
def test_a_plan_that_cannot_be_drawn_is_refused(ops: tuple[dict[str, Any], ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Picture(BASE, ops)
