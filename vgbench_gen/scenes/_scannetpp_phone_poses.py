"""Which poses an iphone scene of ScanNet++ gets (`docs/formats.md#phone-poses`).

One source per scene: `aligned_pose` where the json has any that is sound, else COLMAP, else nerfstudio.
"""

from __future__ import annotations

import re

import numpy as np

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.geometry.poses import check_pose, rotation_angle_deg
from vgbench_gen.scenes._colmap import ColmapModel
from vgbench_gen.scenes._scannetpp_opener import CaptureOpener, colmap_poses
from vgbench_gen.scenes._scannetpp_poses import (
    CheckedPose,
    Nerfstudio,
    PhoneRecord,
    frame_stem,
    read_phone_json,
)
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside

_KEY = re.compile(r"frame_(\d{1,9})")
# Two pose sources of one scene that differ by more than this on median do not describe the same world.
_MAX_SOURCE_GAP_M, _MAX_SOURCE_GAP_DEG = 0.10, 2.0


def frame_index(key: str) -> int:
    """Index in the video of "frame_000120"."""
    return int(key.rpartition("_")[2])


class PoseSources:
    """The pose files of an iPhone capture; what is wrong in them goes into the opener's issues.

    Raises:
        SceneError: the json is no such json, or a file lies outside the scene's folder.
    """

    records: dict[str, PhoneRecord]
    """Records of `pose_intrinsic_imu.json` by frame key."""

    colmap: ColmapModel | None
    """The COLMAP model. Problems with single images matter only where it gives the poses, see `choose_poses`."""

    nerfstudio: Nerfstudio | None
    """Nerfstudio's camera and poses."""

    def __init__(self, opener: CaptureOpener) -> None:
        self._opener = opener
        self.records = self._read_records()
        self.colmap = opener.read_colmap()
        self.nerfstudio = opener.read_nerfstudio("transforms.json")

    def _read_records(self) -> dict[str, PhoneRecord]:
        path = self._opener.folder / "pose_intrinsic_imu.json"
        if not path.exists():
            return {}
        inside(self._opener.root, path)
        records, issues = read_phone_json(path, f"{self._opener.where}/{path.name}")
        self._opener.issues += issues
        return records

    def choose_poses(self) -> tuple[dict[str, CheckedPose], list[str]]:
        """Checked poses of the scene's one source, and the keys to use in order of the video."""
        from_json: dict[str, CheckedPose] = {}
        lost: list[Issue] = []
        for key, record in self.records.items():
            if record.aligned_pose is None:
                lost.append(Issue(key, "pose_missing", "no aligned_pose"))
                continue
            try:
                pose, deviation = check_pose(record.aligned_pose, f"{self._opener.where}/{key}")
                from_json[key] = CheckedPose(pose, deviation)
            except PoseError as problem:
                lost.append(Issue(key, "pose_invalid", str(problem)))
        from_colmap = colmap_poses(self.colmap)
        if from_json:
            self._compare(from_json, from_colmap)
            poses = {
                key: CheckedPose(
                    p.world_from_camera, p.deviation, from_colmap[key].camera_id if key in from_colmap else None
                )
                for key, p in from_json.items()
            }
        elif from_colmap and self.colmap is not None:
            poses = from_colmap
            lost = [Issue(frame_stem(name), "pose_invalid", why) for name, why in self.colmap.problems]
        else:
            poses, lost = self._read_nerfstudio_poses(), []
        issues = self._opener.issues
        issues += lost
        bad = self.nerfstudio.bad if self.nerfstudio else frozenset()
        keys = []
        for key in poses:
            if _KEY.fullmatch(key) is None:
                issues.append(Issue(key[:40], "name_unknown", "not of the form frame_000000"))
            elif key in bad:
                issues.append(Issue(key, "marked_bad", "is_bad in nerfstudio/transforms.json"))
            else:
                keys.append(key)
        return poses, sorted(keys, key=frame_index)

    def _read_nerfstudio_poses(self) -> dict[str, CheckedPose]:
        if self.nerfstudio is None:
            raise SceneError(
                self._opener.where,
                "no usable aligned_pose, no COLMAP model and no nerfstudio poses",
                "pose_intrinsic_imu.json, colmap/ or nerfstudio/transforms.json",
                "Download one of them.",
            )
        return self._opener.check_nerfstudio_poses(self.nerfstudio)

    def _compare(self, ours: dict[str, CheckedPose], colmap: dict[str, CheckedPose]) -> None:
        common = [key for key in ours if key in colmap]
        if not common:
            return
        a = np.stack([ours[key].world_from_camera for key in common])
        b = np.stack([colmap[key].world_from_camera for key in common])
        gap_m = float(np.median(np.linalg.norm(a[:, :3, 3] - b[:, :3, 3], axis=1)))
        turned = a[:, :3, :3].transpose(0, 2, 1) @ b[:, :3, :3]
        gap_deg = float(np.median(rotation_angle_deg(turned)))
        if gap_m > _MAX_SOURCE_GAP_M or gap_deg > _MAX_SOURCE_GAP_DEG:
            detail = f"aligned_pose and COLMAP differ by {gap_m:.3f} m and {gap_deg:.2f} degrees on median"
            self._opener.issues.append(Issue("", "pose_sources_disagree", detail))
