"""Whose pixels may be published, and what it takes to say otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.importers.base import importers
from vgbench_gen.publish.licences import LICENCES, make_gate
from vgbench_gen.samples.make import LICENCE as SAMPLES
from vgbench_gen.scenes._scannetpp_captures import LICENCE as SCANNETPP
from vgbench_gen.scenes.ca1m import LICENCE as CA1M
from vgbench_gen.scenes.scannet import LICENCE as SCANNET
from vgbench_gen.scenes.wildrgbd import LICENCE as WILDRGBD

SCANS = {"scannet": SCANNET, "scannetpp": SCANNETPP, "ca1m": CA1M, "wildrgbd": WILDRGBD}


def row(source: str, licence: str, benchmark: str = "VGBench") -> dict[str, str]:
    return {"benchmark": benchmark, "source": source, "licence": licence}


def test_scans_travel_only_where_their_terms_say_so() -> None:
    travels = {source: make_gate().travels(row(source, licence)) for source, licence in SCANS.items()}
    assert travels == {"scannet": False, "scannetpp": False, "ca1m": False, "wildrgbd": True}
    assert "Copyright" in make_gate().policy(row("wildrgbd", WILDRGBD)).notice
    for source in SCANS:
        assert make_gate().travels(row(source, SAMPLES))  # the same layout, rendered
        assert not make_gate().travels(row(source, SAMPLES, "MMVP"))  # nobody's word for photographs of others


def test_what_nobody_knows_stays_at_home() -> None:
    unknown = [row("matterport", "mit"), row("", ""), {}, row("x", "mit", "Some-Bench"), row("wildrgbd", "mit", "MMVP")]
    assert not any(make_gate().travels(one) for one in unknown)
    assert make_gate().policy(unknown[0]).kind == "unknown"
    # A benchmark's rows go by the benchmark, whatever scans are behind its images.
    assert make_gate().policy(row("wildrgbd", "mit", "SpatialScore/VSI-Bench_8")).name == "VSI-Bench"


def test_every_imported_benchmark_has_a_policy() -> None:
    for name in importers.names():
        source = importers[name]
        for benchmark in {source.benchmark, source.own or source.benchmark, f"SpatialScore/{source.benchmark}"}:
            policy = make_gate().policy(row("", "", benchmark))
            assert policy.kind == "benchmark", benchmark
            assert policy.reason
            assert not policy.pixels


def test_a_flag_names_the_licence() -> None:
    opened = make_gate(["ScanNet=ScanNet-TOU", "mmvp=cc-by-4.0"])
    assert opened.travels(row("scannet", SCANNET))
    assert not opened.travels(row("scannetpp", SCANNETPP))
    rows = [row("scannet", SCANNET)] * 3 + [row("wildrgbd", WILDRGBD), row("", "", "MMVP"), row("ca1m", SAMPLES)]
    told = {d.policy.name: (d.policy.licence, d.rows, d.pixels, d.by_flag) for d in opened.decisions(rows)}
    assert told == {
        "MMVP": ("cc-by-4.0", 1, True, True),
        "cc0-1.0": ("cc0-1.0", 1, True, False),
        "scannet": ("ScanNet-TOU", 3, True, True),
        "wildrgbd": ("MIT", 1, True, False),
    }
    assert "stated by the publisher" in opened.policy(row("", "", "MMVP")).terms


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("scannet", "scannet=ScanNet-TOU"),
        ("scannet=", "scannet=ScanNet-TOU"),
        ("scannet=MIT", "signed agreement"),
        ("scannet++=ScanNet-TOU", "scannetpp=ScanNetpp-TOU"),
        ("MMVP=unknown", "MMVP=LICENCE"),
        ("kinect=MIT", "expected NAME=LICENCE with one of ca1m, posed, scannet, scannetpp"),
    ],
)
def test_another_flag_is_refused(flag: str, told: str) -> None:
    with pytest.raises(ConfigError, match="--with-pixels") as error:
        make_gate([flag])
    assert told in str(error.value)


def test_the_file_is_strict(tmp_path: Path) -> None:
    text = LICENCES.read_text("utf-8")
    for wrong, told in [
        (text.replace("pixels = false", "pixels = 0"), "pixels"),
        (text.replace('reason = "the images', 'why = "the images'), "unknown key 'why'"),
        (text.replace('name = "VSR"', 'name = "mmvp"'), "mmvp stands for two"),
        (text.replace('name = "VSR"', 'name = "ScanNet++"'), "scannetpp stands for two"),
    ]:
        path = tmp_path / f"{len(told)}.toml"
        path.write_text(wrong, "utf-8")
        with pytest.raises(ConfigError, match=told):
            make_gate(path=path)
