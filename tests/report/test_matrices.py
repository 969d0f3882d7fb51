from __future__ import annotations

from vgbench_gen.report.matrices import split_matrices

POSE = "R =\n[[0.968, 0.212, -0.138],\n [-0.163, 0.941, 0.297],\n [0.192, -0.265, 0.945]]\nt = [0.27, -0.26, 0.06]"


def test_matrices_are_parted_from_words() -> None:
    parts = split_matrices(f"Is the pose\n{POSE}\nto within 5 degrees?\nSay yes or no.")
    assert parts == [(False, "Is the pose"), (True, POSE), (False, "to within 5 degrees?\nSay yes or no.")]
    assert "\n".join(text for _, text in split_matrices(POSE)) == POSE
    assert split_matrices(POSE) == [(True, POSE)]


def test_words_are_left_as_they_are() -> None:
    for text in ("", "the box at [606, 237, 863, 559]", "two\nlines", "[see below]\nmore", "R =\nwords"):
        assert [part.matrix for part in split_matrices(text)] == [False]
        assert split_matrices(text)[0].text == text
