"""Errors that a user can mend, and how they are worded.

Every error says where, what was found, what was expected and what to do. The command line prints these as
one line without a traceback; anything that is not a `VGBenchError` is a defect of ours and keeps its traceback. At a
scene it costs that scene alone, see `DefectError`.
"""

from __future__ import annotations

from vgbench_gen.core.lines import make_one_line


def escape_surrogates(text: str) -> str:
    """The text with what was no UTF-8 in a file's name as escapes, so that it can be printed and stored."""
    return text.encode("utf-8", "backslashreplace").decode()


class VGBenchError(Exception):
    """Base of everything a user can fix. Exit status 2.

    What it says is one line that can be printed, whatever it quotes: names of files may hold line breaks.
    """

    def __str__(self) -> str:
        text = escape_surrogates(self._word())
        return text if text.isprintable() else make_one_line(text)

    def _word(self) -> str:
        """What it says, as it is."""
        return super().__str__()


class FormatError(VGBenchError):
    """A file on disk is not what its format says.

    Args:
        where: file (and record, member or line) the problem is in.
        found: what stands there.
        expected: what the format asks for.
        remedy: what the user can do about it; that of the class where nothing is said.
    """

    remedy = "Copy, download or export it again."

    def __init__(self, where: object, found: str, expected: str, remedy: str | None = None) -> None:
        super().__init__(where, found, expected, remedy)
        self.where, self.found, self.expected, self.remedy = str(where), found, expected, remedy or self.remedy

    def _word(self) -> str:
        return f"{self.where}: found {self.found}; expected {self.expected}. {self.remedy}"


class FrameError(FormatError):
    """One frame cannot be used; the scene goes on without it."""

    remedy = "Copy, download or export it again; until then the frame is left out."


class SceneError(FormatError):
    """One scene cannot be used; the build goes on without it."""


class DefectError(VGBenchError):
    """The program failed at one scene in a way that it does not foresee: a defect of its own, met by that scene.

    Its cause (`__cause__`) is what was raised.
    """


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

    def _word(self) -> str:
        return f"{self.reason}: {self.detail}"
