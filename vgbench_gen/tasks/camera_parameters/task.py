"""Focal length, principal point or field of view of the camera behind one image.

The image is a crop of a frame, resized; the value is the crop's (`docs/validity.md#camera-parameters`: crops are chosen
first, which one is shown is drawn after). Whole pixels for fx, fy, cx, cy; a tenth of a degree for fields of view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError, TooFewOptionsError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, Rejected
from vgbench_gen.distractors.base import Proposal
from vgbench_gen.geometry import projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.pictures import SPREAD_PX, Picture, find_warp_matrix, resample
from vgbench_gen.tasks._proposals import make_range, move_numbers
from vgbench_gen.tasks.base import add_margins, reject, tasks
from vgbench_gen.tasks.camera_parameters.crops import (
    CropEvidence,
    SizeEvidence,
    check_crops,
    compute_output_size,
    compute_parameter,
    get_decimals,
    keep_determined,
    make_shown_camera,
    propose_rects,
    round_as_printed,
)
from vgbench_gen.tasks.camera_parameters.estimate import ANGLES, ASK_AXIS, CENTRES, MARGINS, SOLVERS, measure_margins
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.presentation import Claim, Mark
from vgbench_gen.tasks.records import read_camera_record
from vgbench_gen.tasks.revealed import Revealed, reveal_cameras
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import ScalarTask
from vgbench_gen.tasks.solving.camera_fit import NOISE_PX, detect_segments
from vgbench_gen.text.numbers import format_fixed
from vgbench_gen.text.render import fill_word

CENTRE_TOLERANCE = 0.04  # of the image side: half the gap between two options
PAPER_NOISE_MIN, PAPER_NOISE_MAX = 0.05, 0.15  # relative noise of the published wrong values
PUBLISHED_FOCAL, PUBLISHED_CENTRE = 0.25, 0.20  # how far wrong values of SpatialScore v2 are off at most
# What a model is told to name between: of the long side, of the side, and degrees.
NAMED_FOCAL, NAMED_CENTRE, NAMED_DEG = (0.5, 2.5), (0.15, 0.85), (20.0, 100.0)
_RECHECK_COLUMNS = 48


@tasks.register("camera_parameters")
class CameraParameters(ScalarTask):
    """See the module. `unit` is left empty: pixels or degrees, by `ask` (`unit_for`)."""

    needs_meters = False
    name = "camera_parameters"
    version = 6
    asks = tuple(ASK_AXIS)
    category, subcategory = "Camera and Image Transformation", "3D Camera Pose"
    category_origin: ClassVar[Mapping[str, str]] = dict.fromkeys(ScalarTask.formats, "camera_param_vqa_pairs")
    convention: ClassVar[Mapping[str, str]] = {
        "camera": "pinhole",
        "pixel_origin": "centre of the top-left pixel",
        "fov": "edge to edge",
        "size": "as delivered",
    }
    decimals = 1  # the finest of the kinds; values of a fact are rounded by its kind
    candidate_draws = 8
    options_from_pool = True
    options_max = 4  # crops are cut as ladders of four
    margins = MARGINS
    fact_evidence = SizeEvidence
    candidate_evidence = CropEvidence
    checks = (check_crops,)
    solvers = SOLVERS
    paper_column = "Camera"
    any_image_fits = True

    # --- measuring -------------------------------------------------------------------------------------------------

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """Of each frame one fact on its focal length or field of view and, where `centres_of_frame` is 1, one on its
        principal point, of the frames of a short capture two each; no more frames are looked at than would give the
        facts if every one did. Kinds take turns in random order."""
        made, frames = 0, view.distinct_frames(rng)
        kinds = (False, True) if self.limits.centres_of_frame else (False,)
        orders = [rng.permutation([ask for ask in self.asks if (ask in CENTRES) is centre]) for centre in kinds]
        segments: dict[int, FloatArray] = {}
        told: set[tuple[str, float]] = set()
        for look in range(min(-(-limit // len(orders)), 2 * len(frames))):
            again, number = divmod(look, len(frames))
            if number not in segments:
                segments[number] = detect_segments(frames[number].grey)
            for order in orders:
                if made >= limit:
                    return
                ask = str(order[(number + again) % len(order)])
                draft = self._draft(frames[number], segments[number], view, ask, rng)
                if isinstance(draft, Fact):
                    # Neighbouring frames look alike; with one answer they would be one question.
                    said = ask, float(draft.truth_candidate.value[0])
                    if said in told:
                        continue
                    told.add(said)
                    made += 1
                yield draft

    def _draft(
        self, frame: ViewFrame, segments: FloatArray, view: SceneView, ask: str, rng: np.random.Generator
    ) -> Fact | Rejected:
        """segments: (N, 4) line segments of the frame, pixels of its grey image."""
        key, camera = f"{frame.id}/{ask}", frame.camera
        sets = propose_rects(camera, ask, self.limits, rng)
        if not len(sets):
            return reject(self, view, key, "crops_none", 0, 4)
        scale = camera.width / frame.grey.shape[1]
        segments = (segments + 0.5) * scale - 0.5
        crops = keep_determined(camera, segments, NOISE_PX * scale, sets, ask, self.limits)[-self.pool_size :]
        if len(crops) >= 4:
            pool, size = [crop for crop, _ in crops], SizeEvidence(size=compute_output_size(camera, ask))
            fact = self.new_fact(view, pool, frame_ids=(frame.id,), key=key, ask=ask, evidence=size)
            drawn = self.with_drawn_truth(fact, rng)
            if drawn is not None:
                return add_margins(drawn, key, crops[drawn.truth][1])
        return reject(self, view, key, "pixels_undecided", len(crops), 4)

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Fit the pinhole equation to measured points and the output pixels where the resize puts them."""
        frame = view.frame(fact.frame_ids[0])
        show = fact.truth_candidate.show
        (x0, y0, width, height), (out_width, out_height) = show["rect"], show["size"]
        u_out, u_base = _resize_map(x0, width, out_width)
        v_out, v_base = _resize_map(y0, height, out_height)
        base = np.stack(np.meshgrid(u_base, v_base), axis=-1).reshape(-1, 2)
        out = np.stack(np.meshgrid(u_out, v_out), axis=-1).reshape(-1, 2)
        z_m = frame.depth_at(base)
        known = z_m > 0
        points = projection.back_project(frame.depth_camera, frame.depth_uv(base[known]), z_m[known])
        axis = ASK_AXIS[fact.ask]
        slope = points[:, axis] / points[:, 2]
        along = out[known, axis]
        side = (out_width, out_height)[axis]
        if len(along) < 50 or np.ptp(along) < side / 3:
            raise GeometryError(f"{fact.key}: too little known depth in the crop to fit a camera")
        focal, centre = np.polyfit(slope, along, 1)
        if fact.ask in CENTRES:
            return np.array([centre])
        if fact.ask not in ANGLES:
            return np.array([focal])
        low, high = np.arctan2([-0.5 - centre, side - 0.5 - centre], focal)
        return np.array([np.degrees(high - low)])

    def evaluate(self, about: Candidate, fact: Fact) -> float | None:
        """Of the camera of the crop."""
        if "rect" not in about.show:
            return None
        frame = read_camera_record(fact.cameras[fact.frame_ids[0]])
        return compute_parameter(make_shown_camera(frame, about.show), fact.ask)

    def round_for(self, value: float, fact: Fact) -> FloatArray:
        return round_as_printed(value, fact.ask)

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """Difference over one unit of the last printed digit."""
        return self.metric(fact.truth_candidate.value, second, fact) * 10.0 ** get_decimals(fact.ask)

    # --- answer space ----------------------------------------------------------------------------------------------

    def _get_side_px(self, fact: Fact) -> int:
        return SizeEvidence.of(fact).size[ASK_AXIS[fact.ask]]

    def unit_for(self, fact: Fact) -> str:
        return "deg" if fact.ask in ANGLES else "px"

    def unit_key(self, fact: Fact) -> str:
        return "degrees" if fact.ask in ANGLES else "pixels"

    def printed(self, value: FloatArray) -> str:
        """The number alone; `say` knows the fact and with it decimals and unit."""
        return format_fixed(float(value[0]), 1)

    def print_option(self, option: Candidate, fact: Fact) -> str:
        """The value with its unit, and how much of a wall it shows."""
        return " ".join(filter(None, [super().print_option(option, fact), self._say_extent(option.value, fact)]))

    def printed_numbers(self, value: FloatArray) -> FloatArray:
        """The value; none where the extent of a wall stands behind it."""
        return np.zeros(0) if self.limits.wall_m else super().printed_numbers(value)

    def _say_extent(self, value: FloatArray, fact: Fact) -> str:
        """How much of a wall fills the image from edge to edge, which a person can compare with what it shows; "" for
        principal points, and where `wall_m` is 0."""
        wall_m = float(self.limits.wall_m)
        if not wall_m or fact.ask in CENTRES:
            return ""
        shown = float(value[0])
        ratio = 2 * np.tan(np.radians(shown) / 2) if fact.ask in ANGLES else self._get_side_px(fact) / shown
        slots = {"value": format_fixed(wall_m * float(ratio), 2), "distance": f"{wall_m:g}"}
        return fill_word(f"extent.{'xy'[ASK_AXIS[fact.ask]]}", **slots)

    def _claim(self, value: FloatArray, fact: Fact) -> Claim:
        claim, unit = super()._claim(value, fact), fill_word(f"unit.{self.unit_key(fact)}")
        return replace(claim, slots={**claim.slots, "unit": f"{unit} {self._say_extent(value, fact)}".rstrip()})

    def count_decimals(self, fact: Fact) -> int:
        return get_decimals(fact.ask)

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """Ratio for focal lengths, degrees for fields of view, shares of the side for principal points; log-ratio of
        focal lengths over the ceiling, whatever is asked, and 0 for values without a camera."""
        values = np.array([float(candidate.value[0]) for candidate in candidates])
        apart = measure_margins(values[:, None], values, fact.ask, SizeEvidence.of(fact).size, self.limits)
        cameras = [CropEvidence.given(candidate) for candidate in candidates]
        focal = np.log([np.nan if camera is None else camera.fx for camera in cameras])
        spread = np.abs(focal[:, None] - focal) / np.log(self.limits.ratio_max)
        return apart, np.where(np.isnan(spread), 0.0, spread)

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 4) the value over the side of the image that it belongs to, for principal points from the middle; the
        same without its sign; the logarithm of the value, and the side in pixels.

        Crops that show more of a room are decided by their pixels more often, so they are more often asked about than
        named (`docs/validity.md#balanced-selection`).
        """
        side_px = self._get_side_px(fact)
        values = np.array([float(option.value[0]) for option in options])
        shares = values / side_px - 0.5 if fact.ask in CENTRES else values / side_px
        return np.column_stack([shares, np.abs(shares), np.log(np.maximum(values, 1)), np.full(len(values), side_px)])

    def perturbed(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """The paper's rule: the truth times 1 + u, 5 to 15 % either way."""
        noise = float(rng.uniform(PAPER_NOISE_MIN, PAPER_NOISE_MAX)) * (1 if rng.random() < 0.5 else -1)
        value = round_as_printed(float(fact.truth_candidate.value[0]) * (1 + noise), fact.ask)
        return Candidate(f"perturbed:{value[0]:g}", value)

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        """v2's rule 9: random within a quarter of the truth, a fifth for principal points; it has no angles."""
        if fact.ask in ANGLES:
            raise TooFewOptionsError("no_rule", f"{fact.key}: v2 asks for no field of view")
        within = PUBLISHED_CENTRE if fact.ask in CENTRES else PUBLISHED_FOCAL
        factors = 1 + rng.uniform(-within, within, count)
        values = [round_as_printed(float(fact.truth_candidate.value[0] * factor), fact.ask) for factor in factors]
        return [Candidate(f"published:{value[0]:g}", value) for value in values]

    def proposal(self, fact: Fact) -> Proposal:
        """Any that a crop of a wide or a long lens has."""
        width, height = SizeEvidence.of(fact).size
        size = {"width": str(width), "height": str(height)}
        if fact.ask in ANGLES:
            return make_range("angle", NAMED_DEG[0], NAMED_DEG[1], 1, **size)
        kind, shares = ("centre", NAMED_CENTRE) if fact.ask in CENTRES else ("focal", NAMED_FOCAL)
        # The long side gives the focal length of both axes: pixels are square.
        whole = self._get_side_px(fact) if fact.ask in CENTRES else max(width, height)
        return make_range(kind, shares[0] * whole, shares[1] * whole, 0, **size)

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """With the focal length that goes with it, by which the ceiling is measured."""
        (value,) = move_numbers(numbers, rng)
        if not value > 0 or (fact.ask in ANGLES and value >= 180):
            return None
        printed = round_as_printed(value, fact.ask)
        if fact.ask in CENTRES:
            return Candidate("", printed)
        fx = float(printed[0])
        if fact.ask in ANGLES:
            fx = self._get_side_px(fact) / 2 / float(np.tan(np.radians(fx / 2)))
        return Candidate("", printed, evidence=CropEvidence(fx=fx).write())

    def sigma(self, value: float, fact: Fact, noise: SensorNoise) -> float:
        """By the error of the focal length alone: a principal point is off by as many pixels, and a centred field of
        view a by sin(a) times the relative error; no crop's by more."""
        if fact.ask in CENTRES:
            return noise.focal * CropEvidence.of(fact.truth_candidate).parameters["fx" if fact.ask == "cx" else "fy"]
        return noise.focal * (float(np.degrees(np.sin(np.radians(value)))) if fact.ask in ANGLES else value)

    def on_scale(self, values: FloatArray, fact: Fact) -> FloatArray:
        """Ratios tell focal lengths apart, differences all else."""
        return values if fact.ask in (*CENTRES, *ANGLES) else super().on_scale(values, fact)

    def find_tolerance(self, fact: Fact) -> float:
        """Of principal points whole pixels, else a share of the value."""
        if fact.ask not in CENTRES:
            return self.claim_tolerance
        return float(format_fixed(CENTRE_TOLERANCE * self._get_side_px(fact), 0))

    def claim_band(self, value: Any, fact: Fact) -> Any:
        return self.find_tolerance(fact) * (1 if fact.ask in CENTRES else value)

    def claim_noise(self, value: float, fact: Fact) -> float:
        """Of a wide angle, half the tolerance is more than half the margin: too far off to count as the same."""
        most = self.limits.fov_gap_min_deg / 2 - 0.05 if fact.ask in ANGLES else np.inf
        return float(min(super().claim_noise(value, fact), most))

    # --- asking ----------------------------------------------------------------------------------------------------

    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """The crop of the truth."""
        op = {"op": "crop_resize", **fact.truth_candidate.show}
        return (Picture(fact.pictures[fact.frame_ids[0]], (op,)),)

    def slots(self, fact: Fact) -> dict[str, str]:
        """Quantity, unit, the size of the image as shown, and the definition with what else of the camera is stated."""
        width, height = SizeEvidence.of(fact).size
        if fact.ask in CENTRES:
            camera = CropEvidence.of(fact.truth_candidate).parameters
            others = [name for name in ("fx", "fy", "cx", "cy") if name != fact.ask]
            stated = fill_word(f"stated.{fact.ask}", **{name: format_fixed(camera[name], 0) for name in others})
        else:
            stated = fill_word("stated.middle")
        return {
            "quantity": fill_word(f"quantity.{fact.ask}"),
            "unit": fill_word(f"unit.{self.unit_key(fact)}"),
            "definition": f"{fill_word(f'definition.{fact.ask}')} {stated}",
            "width": str(width),
            "height": str(height),
        }

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The camera of the crop."""
        return Revealed(cameras=reveal_cameras(row, self.limits.ratio_min**0.5))

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also what it follows from: a focal length from the angle of view, that from the focal length, and a principal
        point from how far it is from the middle."""
        camera, axis = read_camera_record(fact.cameras[fact.frame_ids[0]]), ASK_AXIS[fact.ask]
        shown, known = make_shown_camera(camera, fact.truth_candidate.show), CropEvidence.of(fact.truth_candidate)
        focal, angle, own = (
            known.parameters[ask] if pen.exact else compute_parameter(shown, ask)
            for ask in (("fx", "fy")[axis], ("hfov", "vfov")[axis], fact.ask)
        )
        told = self.tell_value(own, fact, pen) | {"quantity": pen.word(f"quantity.{fact.ask}")}
        told |= {name: pen.word(f"{name}.{'xy'[axis]}") for name in ("side", "span")}
        told |= {"case": "centre" if fact.ask in CENTRES else "angle" if fact.ask in ANGLES else "focal"}
        side, true = self._get_side_px(fact), float(fact.truth_candidate.value[0])
        digits = pen.find_decimals("degrees", angle, lambda s: side / 2 / np.tan(np.radians(s / 2)), round(focal), 1.0)
        told |= {"focal": pen.say("pixels", focal), "angle": pen.say("degrees", angle, digits)}
        told |= {"pixels": f"{side}", "middle": f"{(side - 1) / 2:g}"}
        return told | {"away": pen.say(("right_px", "down_px")[axis], true - (side - 1) / 2)}

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The principal point, with all parameters of the image as shown."""
        found = CropEvidence.of(fact.truth_candidate).parameters
        label = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
        return [[Mark("point", ((found["cx"], found["cy"]),), label)]]

    def tolerance_words(self, ask: str, tolerance: float) -> tuple[str, ...]:
        """Of principal points in pixels, else a share of the value."""
        if ask in CENTRES:
            return (fill_word("tolerance.pixels", value=format_fixed(tolerance, 0)),)
        return super().tolerance_words(ask, tolerance)


def _resize_map(start: int, side: int, out_side: int) -> tuple[FloatArray, FloatArray]:
    """(output pixels, the base pixels they show) along one axis, read from a ramp that is drawn as pictures are, which
    keeps it exactly away from its ends."""
    ramp = np.arange(start, start + side, dtype=np.float32)[None]
    op = {"rect": [0, 0, side, 1], "size": [out_side, 1]}
    drawn = np.asarray(resample(ramp, find_warp_matrix(op), op["size"]), dtype=np.float64)[0]
    margin = int(np.ceil(4 * SPREAD_PX * max(1.0, out_side / side)))
    picked = np.unique(np.linspace(margin, out_side - 1 - margin, _RECHECK_COLUMNS).astype(int))
    return picked.astype(np.float64), drawn[picked]
