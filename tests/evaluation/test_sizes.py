from __future__ import annotations

from pathlib import Path

import pytest

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.sizes import REGISTRY, UNKNOWN, find_size_billions, read_sizes


@pytest.mark.parametrize(
    ("model", "billions"),
    [
        ("Qwen/Qwen2.5-VL-72B-Instruct", 72), ("vllm:http://gpu-7b:8000/v1#OpenGVLab/InternVL2_5-38B", 38),
        ("moonshotai/Kimi-VL-A3B-Instruct", 3), ("OpenGVLab/InternVL3-78B", 78), ("meta/Llama-3.2V-11B-cot", 11),
        ("microsoft/Phi-3.5-vision-instruct", 4.2), ("deepseek-vl2-tiny", 3.4), ("deepseek-ai/deepseek-vl2", 27.5),
        ("SmolVLM-500M-Instruct", 0.5), ("Qwen3-VL-30B-A3B-Instruct", 30), ("llava-onevision-qwen2-0.5b-ov", 0.5),
        ("openai:gpt-4o", None), ("baseline:random", None), ("vllm:http://gpu-7b:8000/v1#model", None), ("", None),
        ("7bits", None), ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7), ("mixtral-8x22b", 141),
        ("some-8x7b-chat", None), ("some-8x-7B", None), ("some-8\u00d77B", None), ("nx-7b", 7),
    ],
)  # fmt: skip
def test_sizes_by_registry_then_by_name(model: str, billions: float | None) -> None:
    assert find_size_billions(model) == billions


def test_all_voting_models_of_the_paper_are_listed() -> None:
    names = (
        *(f"InternVL2.5-{n}B" for n in (1, 4, 8, 38, 78)), *(f"InternVL3-{n}B" for n in (1, 8, 14, 38, 78)),
        "Kimi-VL-3B", *(f"Qwen2.5-VL-{n}B" for n in (7, 32, 72)), "LLaVA-OneVision-7B", "LLaVA-OneVision-72B",
        "LLaMA-3.2V-11B", "LLaMA-3.2V-CoT", "SpaceQwen2.5VL-3B",
    )  # fmt: skip
    found = [find_size_billions(name) for name in names]
    assert len(names) == 19
    assert found == [1, 4, 8, 38, 78, 1, 8, 14, 38, 78, 3, 7, 32, 72, 7, 72, 11, 11, 3]
    assert sum(size is not None and size >= 32 for size in found) == 7


def test_groups_of_tables() -> None:
    registry = read_sizes(REGISTRY)
    ids = ("InternVL3-1B", "InternVL3-8B", "x-20b", "Qwen2.5-VL-32B", "gpt-4o")
    names = [registry.group(name) for name in ids]
    assert [place for place, _ in names] == [0, 1, 2, 3, 4]
    assert [name for _, name in names] == [
        "below 5B", "5B to below 15B", "15B to below 32B", "32B and more", UNKNOWN
    ]  # fmt: skip


def test_a_wrong_registry_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sizes.toml"
    path.write_text('groups = [0]\n[models]\n"a" = -1\n')
    with pytest.raises(ConfigError, match=r"models\.a: found -1"):
        read_sizes(path)
    path.write_text('[models]\n"a" = "big"\n')
    with pytest.raises(ConfigError, match=r"models\.a"):
        read_sizes(tmp_path / "." / ".." / tmp_path.name / "sizes.toml")
