"""The process that keeps weights on a device: loaded once; a crash or hang costs its call."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agent.toy_tools import install_toys
from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.setup import RemoteServer, load_setup
from vgbench_gen.agent.tool import ToolOptions, tools
from vgbench_gen.agent.toolbox import Toolbox, choose_tools
from vgbench_gen.agent.workers import Observation
from vgbench_gen.core.errors import ConfigError


@pytest.fixture(scope="module", autouse=True)
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("toys")
    install_toys(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        importlib.import_module("toy_weights")
        yield
    for name in ("Toy", "Toy2", "ToyToSetUp"):
        tools._entries.pop(name)


class Bench:
    """A toolbox with toys, and what their process wrote down."""

    def __init__(self, folder: Path, kept: ResultCache | None = None, **options: Any) -> None:
        self.log = folder / "log"
        self.log.touch()
        names = ("Toy", "Toy2")
        setups = {name: tools[name].Options.model_validate({"log": str(self.log), **options}) for name in names}
        self.box = Toolbox([tools[name] for name in names], cache=kept, setups=setups)

    def call(self, *asked: dict[str, Any], name: str = "Toy") -> list[Observation]:
        async def call_all() -> list[Observation]:
            return list(await asyncio.gather(*(self._call(name, one) for one in asked)))

        return asyncio.run(call_all())

    async def _call(self, name: str, arguments: dict[str, Any]) -> Observation:
        read = self.box.read(ToolCall(name, arguments), ImageBook())
        assert not isinstance(read, Observation), read
        return await self.box.call(*read, ImageBook())

    def list_loads(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("load")]


def numbers(seen: Sequence[Observation]) -> list[Any]:
    return [one.values.get("twice", one.failure) for one in seen]


def test_weights_are_loaded_once_for_each_tool_and_calls_wait_for_their_turn(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    try:
        assert numbers(bench.call(*({"number": k} for k in range(10)))) == [2 * k for k in range(10)]
        assert numbers(bench.call({"number": 50}, name="Toy2")) == [100]
        assert len(bench.list_loads()) == 2
        assert len(set(bench.list_loads())) == 1  # one process
    finally:
        bench.box.close()


def test_a_crash_or_hang_costs_its_call_and_the_process_is_started_anew(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    try:
        seen = bench.call({"number": 1}, {"how": "crashes"}, {"number": 2}, {"how": "hangs"}, {"number": 3})
        assert numbers(seen) == [2, "crash", 4, "timeout", 6]
        assert "status 3" in seen[1].message
        assert "0.4 seconds" in seen[3].message
        assert len(set(bench.list_loads())) == len(bench.list_loads()) == 3
    finally:
        bench.box.close()


def test_a_defect_costs_its_call_and_is_tried_again(tmp_path: Path) -> None:
    with_cache = ResultCache(tmp_path / "kept")
    bench = Bench(tmp_path, with_cache)
    try:
        broken: list[dict[str, Any]] = [
            {"number": 1},
            {"number": 2, "how": "breaks"},
            {"number": 3, "how": "refuses"},
            {"number": 4},
        ]
        seen = bench.call(*broken)
        assert numbers(seen) == [2, "tool_error", "tool_error", 8]
        assert "memory is short" in seen[1].message
        calls = bench.log.read_text().count("call")
        bench.call(*broken)
        assert bench.log.read_text().count("call") == calls + 1  # only the defect: memory may have been short
    finally:
        bench.box.close()
        with_cache.close()


def test_who_stops_waiting_costs_the_others_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)

    async def cancel_one() -> Observation:
        gone, stays = (asyncio.create_task(bench._call("Toy", {"number": k})) for k in (1, 2))
        await asyncio.sleep(0.1)
        gone.cancel()
        return await stays

    try:
        assert numbers([asyncio.run(cancel_one())]) == [4]
    finally:
        bench.box.close()


def test_weights_that_are_not_there_end_the_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path, model="gone")
    try:
        with pytest.raises(ConfigError, match="no weights there"):
            bench.call({"number": 1})
    finally:
        bench.box.close()


def test_a_setup_file_fills_options_by_tool_and_by_default(tmp_path: Path) -> None:
    path = tmp_path / "tools.toml"
    path.write_text('[defaults]\ndevice = "cuda:1"\nmodel = "large"\n[Toy]\nmodel = "tiny"\nsize = 2\n')
    told = load_setup(path)
    assert told["Toy"].model_dump() == {"log": "", "device": "cuda:1", "size": 2, "model": "tiny"}
    assert told["Toy2"].model_dump()["model"] == "large"
    assert "ToyToSetUp" not in told
    assert Toolbox([tools["Toy"]], setups=told)._options["Toy"] == told["Toy"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[Toi]\n", r"tools\.toml: found a table \[Toi\]; expected \[defaults\], .*Did you mean Toy\?"),
        ("[Toy]\nmodell = 'x'\n", r"tools\.toml: \[Toy\]: modell: found an unknown key .*Did you mean model\?"),
        ("[Toy]\nsize = 0\n", r"\[Toy\]: size: found 0; expected greater than or equal to 1"),
        ("[defaults]\ndevise = 'cpu'\n", r"\[defaults\] devise: found a key of no tool.*Did you mean device\?"),
        ("[Crop]\nx = 1\n", r"found a table \[Crop\]"),
        ("Toy = 3\n", r"Toy: found 3; expected a"),
        ("[Toy\n", r"no valid TOML"),
    ],
)
def test_what_is_wrong_in_a_setup_file_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tools.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_setup(path)


def test_the_tier_named_first_gives_a_name_its_tool_and_some_must_be_set_up(tmp_path: Path) -> None:
    path = tmp_path / "tools.toml"
    path.write_text("[Calculate]\nweights = 'mine'\n")

    def tier_of(tiers: tuple[str, ...], setups: Any = None) -> str:
        return next(tool.tier for tool in choose_tools(tiers, setups=setups) if tool.name == "Calculate")

    only_toys = [name for name in tools.names() if tools[name].tier == "weights" and not name.startswith("Toy")]
    with pytest.MonkeyPatch.context() as patch:
        for name in only_toys:
            patch.setattr(type(tools[name]), "packages", ())
        assert tier_of(("weights",)) == "utility"
        assert tier_of(("weights", "utility"), load_setup(path)) == "weights"
        assert tier_of(("utility", "weights"), load_setup(path)) == "utility"


def test_without_torch_the_tier_is_refused_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name in ("torch", "transformers") else find(name, *rest)

    monkeypatch.setattr("importlib.util.find_spec", without)
    said = r"tools=weights: \w+: needs torch and transformers, not installed here.*'vgbench-gen\[transformers\]'"
    with pytest.raises(ConfigError, match=said):
        choose_tools(["classical", "weights"])


def test_a_server_keeps_the_weights_and_outlasts_a_crash(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="needs the extra mcp")
    from tests.agent.servers import run_server
    from vgbench_gen.agent.mcp_client import connect

    log = tmp_path / "log"
    setups: dict[str, ToolOptions] = {"Toy": tools["Toy"].Options.model_validate({"log": str(log)})}
    with run_server([tools["Toy"]], setups=setups) as address:
        (remote,) = connect({"gpu": RemoteServer(url=address)})
        box, book = Toolbox([remote]), ImageBook()

        async def call_all() -> list[Observation]:
            found = []
            for how in ("well", "refuses", "crashes", "well"):
                read = box.read(ToolCall("Toy", {"how": how, "number": 3}), book)
                assert isinstance(read, tuple)
                found.append(await box.call(*read, book))
            return found

        told = [(one.failure, one.is_passing, dict(one.values)) for one in asyncio.run(call_all())]
    assert told == [("", False, {"twice": 6}), ("tool_error", False, {}), ("tool_error", True, {}), told[0]]
    assert [line.split()[0] for line in log.read_text().splitlines()].count("load") == 2
