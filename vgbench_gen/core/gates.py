"""Every gate and margin in one place, each with its reason. A recipe may override any of them.

Source of the values: `docs/validity.md#gates` and `docs/validity.md#tasks`. `D%` is per cent of the image diagonal;
`at 640` means pixels after scaling the image to 640 wide.
"""

from __future__ import annotations

from vgbench_gen.core.config import Config
from vgbench_gen.core.noise import NoiseGates


class FrameGates(Config):
    """Which frames of a scene are used at all."""

    keyframe_turn_deg: float = 10.0  # a hand-held camera repeats itself below this; 0.1 s frames are near-duplicates
    keyframe_shift_m: float = 0.2
    max_keyframes: int = 200  # bounds time and memory of long scans
    long_side_px: int = 1024  # delivered size: more detail costs readers tokens and adds nothing to geometry
    sharpness_min: float = 15.0  # Laplacian variance at <= 640 wide; below this edges are gone whatever the scene
    sharpness_of_median_min: float = 0.4  # a plain wall is smooth, a blurred frame is smoother than its neighbours
    depth_valid_min: float = 0.60  # mostly unknown depth hides occluders


class DepthGates(Config):
    """Where measured depth can be believed."""

    near_m: float = 0.4  # structured light and phone LiDAR see nothing nearer
    far_sensor_m: float = 4.5  # error grows with z^2; phone LiDAR ends at 5 m
    far_laser_m: float = 8.0
    edge_guard_px_at_640: float = 8.0  # mixed pixels along depth steps
    edge_step_m: float = 0.10
    edge_step_relative: float = 0.05
    border: float = 0.02  # share of the image size kept free at the border


class SceneGates(Config):
    """Whether poses and depth of a scene agree."""

    pairs: int = 20
    cycle_median_px_at_640: float = 2.0
    agree_share_min: float = 0.70


class RegionGates(Config):
    """2D regions whose depth is asked."""

    side_min_px: int = 32
    area_min: float = 0.005
    valid_min: float = 0.90
    iqr_of_median_max: float = 0.10
    spread_of_median_max: float = 0.25  # p5 to p95
    mean_to_median_max: float = 0.03  # so that "mean depth" is a fair word


class ObjectGates(Config):
    """Objects that may be asked about in a frame.

    Questions speak of the whole object and mark it by a rectangle, so a careful reader must see which one it is and
    how far it reaches. `inside_min`, `rendered_to_projected_iou_min` and `share_min` are stricter than the
    usual ones (0.5, none, none): below them pictures of real captures showed a table where a chair was meant.
    """

    visible_min: float = 0.50
    inside_min: float = 0.75
    area_min: float = 0.01
    area_min_when_inside: float = 0.005
    inside_for_small: float = 0.90
    second_side_min_m: float = 0.05
    depth_max_m: float = 5.0
    # The drawn rectangle is the projected box; where the visible pixels fill little of it, it marks something else.
    rendered_to_projected_iou_min: float = 0.65
    share_min: float = 0.45  # of the rectangle's known depth that lies in the object's box
    ambiguous_rect_iou_max: float = 0.5
    # Boxes around scanned surface (ScanNet, ScanNet++) must hold the whole object, not a sheet or a visible part.
    surface_flat_min: float = 0.35  # smallest over middle side: cabinet fronts, backrests and screens stay below
    surface_side_min_m: float = 0.15  # fitted boxes only: fusion rounds off 1-2 cm, a fifth of a mug
    continues_max: float = 0.3  # of the band along a side that is covered by something nearer
    continues_step_m: float = 0.15


class PairGates(Config):
    """Two views between which motion is asked."""

    overlap_min: float = 0.30
    overlap_max: float = 0.80
    parallax_min_deg: float = 3.0
    parallax_max_deg: float = 30.0
    baseline_min_m: float = 0.15
    baseline_of_depth_min: float = 0.05
    rotation_min_deg: float = 5.0
    rotation_max_deg: float = 60.0
    plane_share_max: float = 0.80  # pose from a single plane has two solutions
    # Two groups of a task in one scene must differ in at least one frame by this much.
    distinct_turn_deg: float = 5.0
    distinct_shift_m: float = 0.15


class CameraGates(Config):
    """camera_parameters."""

    zoom_max: float = 3.0  # a crop can only raise f/W
    focal_ratio_min: float = 1.25  # best single-image solvers reach 59 % at 10 degrees of field of view
    focal_ratio_max: float = 2.4
    fov_gap_min_deg: float = 7.0
    principal_gap_min: float = 0.12  # of the image width (height for cy); 8 % is 3 degrees of pitch, too little to see
    principal_off_centre_min: float = 0.10  # otherwise half the image size answers it
    lines_min: int = 30
    depth_spread_min: float = 2.0  # p95 / p5
    corners_min: int = 50  # in the crop at 640: a blank wall with a shadow passes the two above and shows nothing


class DepthMargins(Config):
    """metric_depth and relative_depth."""

    ratio_min: float = 1.25
    gap_min_m: float = 0.15
    ratio_max: float = 3.0
    order_ratio_min: float = 1.15
    order_gap_min_m: float = 0.25
    order_ratio_max: float = 4.0


class DistanceMargins(Config):
    """object_distance."""

    min_m: float = 0.4
    max_m: float = 5.0
    rect_iou_max: float = 0.3
    box_iou_max: float = 0.05
    ratio_min: float = 1.30  # people and the best generators cannot tell less apart
    gap_min_m: float = 0.15
    ratio_max: float = 3.0
    # What the text alone tells of the answer: u = pixels between the rectangles / fx, at a typical depth. The logarithm
    # is off by a Student t, whose scale is guess_log_sd where u = 1/3 and falls with guess_log_sd_power of u. Options
    # are balanced for a reader who knows this where a build has too few facts to say more (`tasks._known`). Fitted by
    # likelihood to 769 facts of the sample scenes.
    guess_depth_m: float = 3.1
    guess_log_sd: float = 0.36
    guess_log_sd_power: float = -0.35
    guess_freedom: float = 8.0


class HomographyGates(Config):
    """Both homography tasks."""

    denominator_min: float = 0.6
    denominator_max: float = 1.67
    kept_min: float = 0.60
    component_min_d: float = 1.0  # D%: a component is either absent or visible
    keypoints_min: int = 200
    gap_min_d: float = 6.0
    gap_max_d: float = 35.0


class BoxMargins(Config):
    """object_location."""

    iou_max: float = 0.15  # the lowest overlap that detection benchmarks count as a hit
    depth_ratio_max: float = 2.2
    ladder_ratio_min: float = 1.20
    ladder_ratio_max: float = 1.30  # three steps stay within the ceiling
    # What is known of objects before looking; options are balanced for a reader who knows it where a build has too few
    # facts to say more (`tasks._known`). Depth is log-normal, hardly changed by how large the object appears (slope
    # -0.07). A box tells by its edges where down is, and most things stand on the floor or on a table: (share, mean,
    # standard deviation) of metres from the camera down to the lowest corner. Fitted to 863 facts of the sample scenes.
    depth_typical_m: float = 2.17
    depth_log_sd: float = 0.44
    drop_m: tuple[tuple[float, float, float], ...] = ((0.545, 1.45, 0.16), (0.377, 0.57, 0.28), (0.078, -0.44, 0.77))


class PoseMargins(Config):
    """relative_pose."""

    rotation_gap_min_deg: float = 15.0
    direction_gap_min_deg: float = 30.0
    direction_norm_min_m: float = 0.2
    reprojection_gap_min_d: float = 8.0
    rotation_max_deg: float = 60.0
    norm_max_m: float = 2.0
    matched_within: float = 0.30  # angles and norms of one set
    pnp_rotation_max_deg: float = 3.0
    pnp_inliers_min: int = 60


class ViewMargins(Config):
    """view_after_motion.

    Calibrated on real captures: with gaps of 12 degrees or 0.3 m and a spread of 15 points no capture gave a single
    set of four, although many sets were more than 8 D% apart in the image, which is what an eye goes by. Pose noise
    of a degree and 3 cm is an eighth of the gaps below. Set-first already puts the rule "most similar to the source"
    at chance, whatever the spread; the ceiling keeps candidates that hardly overlap from being told by that alone.
    """

    motion_min_deg: float = 10.0
    motion_min_m: float = 0.25
    rotation_gap_min_deg: float = 8.0
    shift_gap_min_m: float = 0.2
    image_gap_min_d: float = 8.0
    overlap_min: float = 0.30
    overlap_spread_max: float = 0.30


class TrackGates(Config):
    """point_tracking."""

    gap_min_d: float = 6.0  # above TAP-Vid's loosest threshold
    gap_min_m: float = 0.10
    motion_min_d: float = 8.0
    cycle_max_px_at_640: float = 1.0


class Gates(Config):
    """All gates and margins of a build."""

    frame: FrameGates = FrameGates()
    depth: DepthGates = DepthGates()
    scene: SceneGates = SceneGates()
    region: RegionGates = RegionGates()
    object: ObjectGates = ObjectGates()
    pair: PairGates = PairGates()
    camera: CameraGates = CameraGates()
    depths: DepthMargins = DepthMargins()
    distance: DistanceMargins = DistanceMargins()
    homography: HomographyGates = HomographyGates()
    box: BoxMargins = BoxMargins()
    pose: PoseMargins = PoseMargins()
    view: ViewMargins = ViewMargins()
    track: TrackGates = TrackGates()
    noise: NoiseGates = NoiseGates()
