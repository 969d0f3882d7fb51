"""Focal length, principal point or field of view of the camera behind one image."""

from vgbench_gen.tasks.camera_parameters.task import CameraParameters

__all__ = ["CameraParameters"]
