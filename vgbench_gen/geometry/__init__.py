"""Geometry in numpy, and the one place where conventions stand. No input or output, nothing heavier than scipy.

Inside this package
-------------------
Units
    Meters, seconds, pixels; degrees wherever an angle leaves a function. Names end in their unit.
Camera frame
    x right, y down, z forward (OpenCV). Right-handed.
Pixels
    `(u, v)` = (column, row). Pixel (0, 0) is the *centre* of the top-left pixel, so a W x H image covers
    [-0.5, W - 0.5) x [-0.5, H - 0.5). The nearest pixel of (u, v) is (floor(u + 0.5), floor(v + 0.5)).
    A rectangle `(x1, y1, x2, y2)` is continuous in the same coordinates: the crop of the columns
    x0 .. x0 + w - 1 is the rectangle from x0 - 0.5 to x0 + w - 0.5.
K
    [[fx, 0, cx], [0, fy, cy], [0, 0, 1]] for one exact resolution and orientation; no skew, no distortion:
    `u = fx * x / z + cx`. Points with z <= 0 have no pixel (`nan`), they never wrap to the other side.
Depth
    z along the optical axis, not the length of the ray; float32 meters, 0 = unknown. "Distance" is Euclidean.
    ray length = z * sqrt(1 + ((u - cx) / fx)^2 + ((v - cy) / fy)^2).
Transforms
    (4, 4) float64 acting on columns, named `dst_from_src`: `p_dst = dst_from_src @ p_src`, so that
    `c_from_a = c_from_b @ b_from_a`. A camera's pose is `world_from_camera`; its centre is the last column.
    The relative pose `X2 = R X1 + t` of two cameras is `second_from_first`.
Quaternions
    (w, x, y, z), Hamilton, w >= 0 when we make them.
Boxes
    `rotation` = `frame_from_box`; its columns are the box axes, `size_m` are full lengths along them. The eight
    corners come in the order (---) (+--) (++-) (-+-) (--+) (+-+) (+++) (-++) of the signs of x, y, z.
Homographies
    `x_dst ~ H x_src` in pixels of the convention above, H33 = 1.
Gravity
    `up_world` is a unit vector *against* gravity, or None where the capture does not say. ScanNet, ScanNet++ and
    CA-1M worlds are z-up; WildRGB-D has an arbitrary world and no gravity. An image is upright when up, seen by its
    camera, points along -y.
Quarter turns
    k turns are `np.rot90(image, k)`: counter-clockwise on the screen. Pixel (u, v) goes to (v, W - 1 - u) for
    k = 1, camera axes by `turned_from_camera = [[0, 1, 0], [-1, 0, 0], [0, 0, 1]]`. Image, depth, masks, K, pose
    and boxes turn together or not at all.
Resizing
    Edge-aligned: `cx' = (cx + 0.5) * W' / W - 0.5`. Exception: ScanNet depth, whose K follows a
    corner-centre rule, so that it keeps its own K and pixels move between the two through both (`cameras.map_pixels`).

What datasets do differently on disk says `docs/formats.md`; loaders convert, and nothing behind them does.
"""
