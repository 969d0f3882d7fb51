"""The engine around a backend, played by scripts and on a clock of its own."""

from __future__ import annotations

import asyncio
import re
from itertools import chain, repeat
from pathlib import Path

import pytest

from tests.backends.fixtures import Time, picture, request, scripted
from vgbench_gen.backends._budget import SHIPPED, Prices, find_price
from vgbench_gen.backends._call import Call, Failed
from vgbench_gen.backends._limits import Pace, RateGate
from vgbench_gen.backends.base import BackendError, ImagePart, Message, Reply, Settings
from vgbench_gen.backends.batch import ask_all, ask_each
from vgbench_gen.backends.scripted import Scripted, ScriptLine
from vgbench_gen.backends.spec import BackendOptions, open_backend
from vgbench_gen.core.config import load_toml
from vgbench_gen.core.errors import ConfigError

OK = ScriptLine(reply="B", usage=(10, 5))


def one(backend: Scripted, text: str = "hello", **settings: object) -> Reply | BackendError:
    return ask_all(backend, [request(text, **settings)])[0]


def error(backend: Scripted, text: str = "hello") -> BackendError:
    outcome = one(backend, text)
    assert isinstance(outcome, BackendError)
    return outcome


def test_what_may_pass_is_tried_again_after_longer_and_longer_waits() -> None:
    time, left = Time(), [ScriptLine(failure="500"), ScriptLine(failure="cut"), ScriptLine(failure="bad_reply"), OK]
    backend = scripted(lambda call: left.pop(0), time)

    reply = one(backend)

    assert isinstance(reply, Reply)
    assert (reply.text, reply.attempts) == ("B", 4)
    assert [0.25 <= wait / 2**k <= 0.5 for k, wait in enumerate(time.slept)] == [True] * 3
    assert (backend.tally.requests, backend.tally.retried, backend.tally.slowed) == (4, 3, 0)


def test_what_will_not_pass_is_not_tried_again() -> None:
    backend = scripted(lambda call: ScriptLine(failure="400"))
    assert error(backend).kind == "wrong_request"
    assert backend.tally.requests == 1


def test_a_refused_key_is_sent_once_and_the_others_are_told() -> None:
    backend = scripted(lambda call: ScriptLine(failure="401"), options=BackendOptions(concurrency=1))
    outcomes = ask_all(backend, [request(str(i)) for i in range(9)])
    assert {outcome.kind for outcome in outcomes if isinstance(outcome, BackendError)} == {"refused_key"}
    assert (len(outcomes), backend.tally.requests) == (9, 1)


@pytest.mark.parametrize(("failure", "attempts"), [("500", 3), ("429", 3), ("timeout", 3)])
def test_trying_again_ends(failure: str, attempts: int) -> None:
    backend = scripted(lambda call: ScriptLine.model_validate({"failure": failure}), options=BackendOptions(retries=2))
    found = error(backend)
    assert found.kind == ("timeout" if failure == "timeout" else "api_error")
    assert f"Tried {attempts} times" in found.message
    assert backend.tally.requests == attempts


def test_a_provider_that_names_its_wait_gets_it() -> None:
    time, left = (
        Time(),
        [ScriptLine(failure="500", retry_after_s=7.0), ScriptLine(failure="429", retry_after_s=11.0), OK],
    )
    assert isinstance(one(scripted(lambda call: left.pop(0), time)), Reply)
    assert time.slept == [7.0, 11.0]


def test_nobody_waits_for_a_provider_that_closed_for_the_day() -> None:
    time = Time()
    found = error(scripted(lambda call: ScriptLine(failure="429", retry_after_s=3600.0), time))
    assert "3600" in found.message
    assert not time.slept


def test_requests_of_one_moment_narrow_the_gate_once_and_success_widens_it() -> None:
    time = Time()
    gate = RateGate(16, time.clock)
    for _ in range(10):  # all were sent before the first of these answers
        gate.slowed(started_s=time.now_s - 1, pause_s=0.0)
    assert gate.limit == 8
    time.now_s += 5
    gate.slowed(started_s=time.now_s - 1, pause_s=0.0)
    assert gate.limit == 4
    for _ in range(4):
        gate.succeeded()
    assert 4.5 < gate.limit <= 5
    for _ in range(500):
        gate.succeeded()
    assert gate.limit == 16


def test_a_pause_holds_back_everyone() -> None:
    time = Time()
    gate = RateGate(4, time.clock)
    gate.slowed(started_s=time.now_s, pause_s=30.0)

    async def enter() -> float:
        async with gate.slot():
            return time.now_s

    assert asyncio.run(enter()) == 1030.0


def test_no_more_run_at_once_than_the_narrowed_gate_lets_through() -> None:
    under_way: list[int] = []  # at the start of each attempt
    now = 0

    class Crowded(Scripted):
        async def _send(self, call: Call) -> Reply:
            nonlocal now
            now += 1
            under_way.append(now)
            number = len(under_way)
            await asyncio.sleep(0)
            now -= 1
            if number <= 8:
                raise Failed("api_error", "slow down", "slower", 1.0)
            return await super()._send(call)

    backend = Crowded("scripted:x", "x", lambda call: OK, BackendOptions(concurrency=8), Time().clock)
    outcomes = ask_all(backend, [request(str(i)) for i in range(12)])
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert backend.tally.slowed == 8
    assert max(under_way[:8]) == 8
    assert under_way[8:12] == [1, 2, 3, 4]
    assert max(under_way[8:]) <= 6  # widened by the first successes


@pytest.mark.parametrize(("per_minute", "units"), [(60, 1), (6000, 100)])
def test_no_minute_holds_more_than_its_share(per_minute: int, units: int) -> None:
    time = Time()
    pace = Pace(per_minute, time.clock)

    async def starts() -> list[float]:
        found = []
        for number in range(200):
            await pace.wait(units)
            found.append(time.now_s)
            if number == 50:
                time.now_s += 500  # an idle time saves nothing up
        return found

    found = asyncio.run(starts())
    for start in found:
        assert units * sum(start <= other < start + 60 for other in found) <= per_minute
    assert found[50] == pytest.approx(1050.0)


def test_tokens_that_were_not_used_come_back_to_the_minute() -> None:
    time = Time()
    backend = scripted(lambda call: OK, time, BackendOptions(tpm=6000, concurrency=1))
    ask_all(backend, [request(str(i), max_tokens=1000) for i in range(5)])
    # 15 tokens each, 100 a second: what was held back for the answers (10 s each) is not waited for.
    assert sum(time.slept) == pytest.approx(4 * 0.15)


def test_a_budget_in_tokens_stops_before_it_is_passed_and_keeps_what_came(tmp_path: Path) -> None:
    options = BackendOptions(budget_tokens=200, concurrency=4, cache=tmp_path / "cache.sqlite")
    backend = scripted(lambda call: OK, options=options)
    requests = [request(f"{i:04d}", max_tokens=50) for i in range(40)]
    outcomes = ask_all(backend, requests)
    replies = [outcome for outcome in outcomes if isinstance(outcome, Reply)]
    kinds = {outcome.kind for outcome in outcomes if isinstance(outcome, BackendError)}
    assert kinds == {"budget"}
    assert backend.tally.tokens == 15 * len(replies) <= 200
    assert 200 - backend.tally.tokens < 15 + 70  # one more might have passed it
    again = scripted(lambda call: OK, options=BackendOptions(cache=options.cache))
    assert all(isinstance(outcome, Reply) for outcome in ask_all(again, requests))
    assert again.tally.requests == 40 - len(replies)


def test_a_wrong_guess_of_what_requests_use_does_not_spend_the_budget_many_times() -> None:
    # Thought to use about 60 tokens each, they use 2,000; all 64 at once would use 128,000. The first is done while
    # three others still run on the wrong guess.
    options = BackendOptions(budget_tokens=12_000, concurrency=64)
    delays_s = chain([0.0], repeat(0.02))
    backend = scripted(lambda call: ScriptLine(reply="B", usage=(1990, 10), delay_s=next(delays_s)), options=options)
    outcomes = ask_all(backend, [request(f"{i:04d}", max_tokens=50) for i in range(100)])
    assert 8_000 <= backend.tally.tokens <= 12_000
    assert sum(isinstance(outcome, BackendError) for outcome in outcomes) >= 94


def test_a_budget_in_money_counts_by_the_table(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[[price]]\nprovider = "scripted"\nmodel = "test"\nprompt = 1000.0\ncached = 0.0\ncompletion = 2000.0\n'
    )
    options = BackendOptions(budget_usd=0.1, prices=prices, concurrency=1)
    backend = scripted(lambda call: OK, options=options)
    outcomes = ask_all(backend, [request(str(i), max_tokens=5) for i in range(20)])
    first = outcomes[0]
    assert isinstance(first, Reply)
    assert first.cost_usd == pytest.approx(0.02)
    spent = sum(outcome.cost_usd or 0 for outcome in outcomes if isinstance(outcome, Reply))
    assert 0.05 < spent <= 0.1
    assert backend.tally.usd == pytest.approx(spent)


def test_a_budget_in_money_needs_a_price() -> None:
    with pytest.raises(ConfigError, match="price is unknown"):
        scripted(lambda call: OK, options=BackendOptions(budget_usd=1.0))


def test_shipped_prices_say_when_and_where_they_were_read() -> None:
    prices = load_toml(SHIPPED, Prices).price
    assert {("openai", "gpt-4o"), ("deepseek", "deepseek-flash")} <= {(price.provider, price.model) for price in prices}
    assert len({(price.provider, price.model) for price in prices}) == len(prices)
    for price in prices:
        assert re.fullmatch(r"20\d\d-\d\d", price.as_of), price
        assert price.source.startswith("https://")
        assert price.cached is not None
        assert price.cached < price.prompt < price.completion
    assert find_price("openai", "gpt-99", None) is None


def test_an_answer_that_nobody_counted_still_counts() -> None:
    backend = scripted(lambda call: ScriptLine(reply="B" * 300), options=BackendOptions(budget_tokens=10_000))
    reply = one(backend)
    assert isinstance(reply, Reply)
    assert reply.usage is None
    assert 100 < backend.tally.tokens < 200


def test_same_requests_at_the_same_time_are_asked_once() -> None:
    asked = 0

    def play(call: Call) -> ScriptLine:
        nonlocal asked
        asked += 1
        return ScriptLine(reply="B", delay_s=0.01)

    outcomes = ask_all(scripted(play), [request("same") for _ in range(8)])
    assert asked == 1
    assert [isinstance(outcome, Reply) and outcome.cached for outcome in outcomes].count(False) == 1


def test_a_failure_is_shared_too() -> None:
    backend = scripted(lambda call: ScriptLine(failure="400", delay_s=0.01))
    outcomes = ask_all(backend, [request("same") for _ in range(3)])
    assert [isinstance(outcome, BackendError) for outcome in outcomes] == [True] * 3
    assert backend.tally.requests == 1


def test_who_shares_a_cancelled_request_asks_it_anew() -> None:
    class Stuck(Scripted):
        async def _send(self, call: Call) -> Reply:
            if self.tally.requests == 1:
                await asyncio.Event().wait()
            return await super()._send(call)

    backend = Stuck("scripted:x", "x", lambda call: OK)

    async def leave() -> Reply:
        first, second = (asyncio.create_task(backend.ask((Message.of("user", "x"),), Settings())) for _ in range(2))
        while not backend.tally.requests:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        return await second

    reply = asyncio.run(leave())
    assert (reply.text, reply.cached, backend.tally.requests) == ("B", False, 2)


@pytest.mark.parametrize(
    "change",
    [{"epoch": 1}, {"stage": "judge"}, {"seed": 2}, {"temperature": 0.5}, {"system": "s"}, {"extra_body": {"a": 1}}],
)
def test_any_setting_makes_another_request(change: dict[str, object]) -> None:
    backend = scripted(lambda call: OK)
    outcomes = ask_all(backend, [request("x"), request("x", **change)])
    assert len({outcome.request_digest for outcome in outcomes if isinstance(outcome, Reply)}) == 2


def test_images_are_part_of_the_request_by_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(picture(shade=1))
    sources: list[bytes | Path] = [tmp_path / "a.jpg", picture(shade=1), picture(shade=2)]
    parts = [*(ImagePart(source) for source in sources), ImagePart(picture(shade=1), long_side_px=32)]
    outcomes = ask_all(scripted(lambda call: OK), [request("x", part) for part in parts])
    first, same, other, smaller = [outcome.request_digest for outcome in outcomes if isinstance(outcome, Reply)]
    assert first == same
    assert len({first, other, smaller}) == 3


def test_outcomes_come_in_order_and_each_is_reported_once() -> None:
    def play(call: Call) -> ScriptLine:
        number = int(call.text)
        return (
            ScriptLine(failure="400")
            if number % 5 == 0
            else ScriptLine(reply=str(number), delay_s=(10 - number % 10) / 1e3)
        )

    told: dict[int, object] = {}
    done: list[int] = []
    outcomes = ask_all(
        scripted(play, options=BackendOptions(concurrency=7)),
        [request(str(i)) for i in range(40)],
        progress=lambda count, total: done.append(count),
        on_reply=told.__setitem__,
    )
    assert [o.text if isinstance(o, Reply) else None for o in outcomes] == [
        str(i) if i % 5 else None for i in range(40)
    ]
    assert [told[i] for i in range(40)] == outcomes
    assert list(told) != list(range(40))  # told as they came
    assert done == list(range(1, 41))


def test_what_a_callback_raises_stops_everything() -> None:
    backend = scripted(lambda call: ScriptLine(reply="B", delay_s=0.001), options=BackendOptions(concurrency=2))

    def full(index: int, outcome: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        ask_all(backend, [request(str(i)) for i in range(50)], on_reply=full)
    assert backend.tally.requests < 10


def test_a_cancelled_batch_keeps_what_came_and_can_go_on(tmp_path: Path) -> None:
    options = BackendOptions(concurrency=4, cache=tmp_path / "cache.sqlite")
    backend = scripted(lambda call: ScriptLine(reply="B", delay_s=0.001), options=options)
    requests, came = [request(str(i)) for i in range(60)], []

    async def stopped() -> None:
        task = asyncio.create_task(ask_each(backend, requests, on_reply=lambda index, _: came.append(index)))
        while len(came) < 10:
            await asyncio.sleep(0.001)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped())
    sent = backend.tally.requests
    outcomes = ask_all(backend, requests)  # the same backend in another event loop
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert all(outcome.cached for index in came if isinstance(outcome := outcomes[index], Reply))
    assert backend.tally.requests - sent <= 60 - len(came)


def test_a_script_plays_its_lines(tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(
        '{"match": "judge", "reply": "yes"}\n\n{"reply": "first"}\n{"failure": "400"}\n{"reply": "any", "times": 0}\n'
    )
    backend = open_backend(f"scripted:{script}", BackendOptions(concurrency=1))
    outcomes = ask_all(backend, [request(text) for text in ("a", "judge 1", "b", "c", "judge 2", "d")])
    said = [outcome.text if isinstance(outcome, Reply) else outcome.kind for outcome in outcomes]
    assert said == ["first", "yes", "wrong_request", "any", "yes", "any"]


@pytest.mark.parametrize(
    ("text", "found"),
    [('{"reply": 1}', "1: reply"), ("nonsense", "1: found no JSON"), ("[]", "no object"), ('{"replay": ""}', "replay")],
)
def test_a_wrong_script_is_refused(tmp_path: Path, text: str, found: str) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(text)
    with pytest.raises(ConfigError, match=found):
        open_backend(f"scripted:{script}")
