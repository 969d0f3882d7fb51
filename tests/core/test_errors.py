from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgbench_gen.core import errors


def test_a_format_error_says_where_found_expected_remedy() -> None:
    error = errors.PoseError("s/pose/3.txt", "-inf", "a rigid 4x4 matrix", "The frame is dropped.")
    assert str(error) == "s/pose/3.txt: found -inf; expected a rigid 4x4 matrix. The frame is dropped."
    assert (error.where, error.found, error.expected) == ("s/pose/3.txt", "-inf", "a rigid 4x4 matrix")


def test_a_bad_pose_costs_the_frame_and_a_bad_scene_is_no_frame_error() -> None:
    assert issubclass(errors.PoseError, errors.FrameError)
    assert not issubclass(errors.SceneError, errors.FrameError)
    assert not issubclass(errors.FrameError, errors.SceneError)


def test_everything_a_user_can_mend_has_one_base() -> None:
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, Exception)]
    assert len(kinds) >= 9
    assert all(issubclass(kind, errors.VGBenchError) for kind in kinds)


@given(st.text() | st.just("x\ny\x1b[2J\udcff"))
def test_an_error_is_one_line_whatever_it_quotes(text: str) -> None:
    kinds = [
        errors.SceneError(text, text, text, text),
        errors.TooFewOptionsError("too_close", text),
        errors.DatasetError(f"{text}: no such file"),
    ]
    assert all(str(error).isprintable() for error in kinds)


@pytest.mark.parametrize(
    "error",
    [
        errors.SceneError("a", "b", "c", "d"),
        errors.TooFewOptionsError("too_close", "2 of 4 left"),
        errors.ConfigError("no such key"),
    ],
)
def test_errors_come_back_from_worker_processes_whole(error: errors.VGBenchError) -> None:
    # Process pools send exceptions by pickle; one whose constructor needs other arguments than `args` breaks the pool.
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
