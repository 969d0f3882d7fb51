"""Errors that a user can mend, and how they are worded.

Every error says where, what was found, what was expected and what to do. The command line prints these as
one line without a traceback; anything that is not a `VGBenchError` is a defect of ours and keeps its traceback.
"""

from __future__ import annotations


class VGBenchError(Exception):
    """Base of everything a user can fix. Exit status 2."""


class FormatError(VGBenchError):
    """A file on disk is not what its format says.

    Args:
        where: file (and record, member or line) the problem is in.
        found: what stands there.
        expected: what the format asks for.
        remedy: what the user can do about it.
    """

    def __init__(self, where: object, found: str, expected: str, remedy: str) -> None:
        super().__init__(where, found, expected, remedy)
        self.where, self.found, self.expected, self.remedy = str(where), found, expected, remedy

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}; expected {self.expected}. {self.remedy}"


class FrameError(FormatError):
    """One frame cannot be used; the scene goes on without it."""


class SceneError(FormatError):
    """One scene cannot be used; the build goes on without it."""


class PoseError(FrameError):
    """A pose is not a finite rigid transform."""


class GeometryError(VGBenchError):
    """A geometric quantity is undefined for this input (degenerate, behind the camera, singular)."""


class ConfigError(VGBenchError):
    """A recipe, flag or environment variable does not make sense."""


class UnknownNameError(VGBenchError):
    """A name is not registered."""


class PluginError(VGBenchError):
    """An installed package announces a plug-in that cannot be loaded."""


class DatasetError(VGBenchError):
    """A built dataset cannot be read or is not the one expected."""


class TooFewOptionsError(VGBenchError):
    """A distractor strategy cannot fill an option set within the gates.

    Args:
        reason: short machine-readable reason.
        detail: what was tried, with numbers.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"
