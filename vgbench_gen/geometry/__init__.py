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
    Edge-aligned: `cx' = (cx + 0.5) * W' / W - 0.5`. Exception: see ScanNet below.

What datasets do differently on disk (loaders convert, nothing behind them does)
--------------------------------------------------------------------------------
ScanNet
    Poses are camera-to-world with our axes; lost tracking is a matrix of -inf. Depth was warped into the colour
    camera: same centre and axes, but its K follows a *corner-centre* rule (cx_d = cx_c * (Wd - 1) / (Wc - 1)), so
    depth keeps its own K and pixels move between the two through both K (`cameras.map_pixels`). Stored extrinsics
    between the two are not applied. Depth unit: value / depthShift.
ScanNet++, iPhone
    "aligned_pose" is camera-to-world in the mesh's world with our axes; `pose` is in ARKit's own world. Images keep
    the sensor's orientation, so captures held upright look turned by 90 degrees; the turn comes from the pose. Depth
    (256 x 192, mm) sees what colour sees: its K is the colour K resized.
ScanNet++, DSLR
    Fisheye images; undistorted before use. No depth shipped.
COLMAP models (both of ScanNet++)
    Poses are world-to-camera, quaternion (w, x, y, z). The centre of the first pixel is (0.5, 0.5): subtract 0.5
    from cx and cy.
nerfstudio transforms.json (ScanNet++ DSLR)
    Camera-to-world M with OpenGL camera axes (x right, y up, z back) *and* a permuted world x' = y, y' = x, z' = -z:
    `world_from_camera = P @ M @ diag(1, -1, -1, 1)`, P = [[0,1,0,0],[1,0,0,0],[0,0,-1,0],[0,0,0,1]].
CA-1M
    Every frame was turned upright by itself: width and height may swap within one capture, and K, pose, depth and
    boxes are given for the turned frame. Poses are camera-to-world in the laser scanner's z-up world. Objects come
    once per frame in that camera's frame and once in the world. Depth in mm.
WildRGB-D
    K is written column by column; poses are camera-to-world in a SLAM world of metric scale whose axes and gravity
    mean nothing. Depth in mm at the size of the image.
"""
