"""Depth seen from a pose, rendered from a mesh (`docs/formats.md#undistortion`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Camera, DepthArray, FloatArray

# The range of the dataset's own renderer.
NEAR_M, FAR_M = 0.05, 20.0
# As fine as a depth sensor's picture: a scene's depth stays in memory, and finer rays would add nothing to answers.
RENDERED_WIDTH = 640


class MeshDepth:
    """One mesh, ready to be rendered; the search structure is built when first used (it cannot be pickled).

    vertices_m: (V, 3) meters, world frame. faces: (F, 3) vertex indices.
    """

    def __init__(self, vertices_m: npt.NDArray[Any], faces: npt.NDArray[Any]) -> None:
        self._vertices, self._faces = vertices_m, faces
        self._scene: Any = None

    def _built(self) -> Any:
        if self._scene is None:
            import open3d

            o3d: Any = open3d  # its type stubs ask for arguments that have defaults
            # One thread: scenes are measured in parallel processes.
            self._scene = o3d.t.geometry.RaycastingScene(nthreads=1)
            vertices = o3d.core.Tensor(np.ascontiguousarray(self._vertices, np.float32))
            faces = o3d.core.Tensor(np.ascontiguousarray(self._faces, np.uint32))
            self._scene.add_triangles(vertices, faces)
            self._vertices = self._faces = np.empty((0, 3))  # the scene has its own copy
        return self._scene

    def render(self, camera: Camera, world_from_camera: FloatArray) -> DepthArray:
        """(H, W) float32 z-depth in meters at the centre of each pixel; 0 where nothing is hit in range.

        camera: pinhole, pixel (0, 0) is the centre of the first pixel. world_from_camera: (4, 4).
        """
        # Directions with camera-z 1, so that the ray parameter is z-depth, not distance.
        x = (np.arange(camera.width) - camera.cx) / camera.fx
        y = (np.arange(camera.height) - camera.cy) / camera.fy
        R = world_from_camera[:3, :3]
        rays = np.empty((camera.height, camera.width, 6), np.float32)
        for axis in range(3):
            direction = R[axis, 0] * x[None, :] + (R[axis, 1] * y + R[axis, 2])[:, None]
            # Starting on the near plane lets a ray pass what is nearer.
            rays[..., axis] = world_from_camera[axis, 3] + NEAR_M * direction
            rays[..., 3 + axis] = direction
        import open3d

        o3d: Any = open3d
        depth = self._built().cast_rays(o3d.core.Tensor(rays))["t_hit"].numpy() + np.float32(NEAR_M)
        depth[~(depth <= FAR_M)] = 0
        return np.asarray(depth, np.float32)
