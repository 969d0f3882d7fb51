"""Plan-Execute: a plan of calls, all of them carried out, what they contribute, and the answer.

Limits of the paper (SpatialScore, arXiv 2505.17012, sections 3 and D.4): three attempts at a plan that can be read and
carried out, then the direct answer. In mode `sane` a failed call costs its own result, not the whole plan.
"""

from __future__ import annotations

import json

from vgbench_gen.agent.calls import ToolCall, parse_plan
from vgbench_gen.agent.run import AgentRun, find_answer, write_observation
from vgbench_gen.agent.workers import Observation
from vgbench_gen.backends.base import Message

ATTEMPTS = 3


async def run_plan_execute(run: AgentRun, attempts: int = ATTEMPTS) -> str:
    """The answer.

    Raises:
        BackendError: the core model gives no usable reply.
    """
    words = run.words
    planner = words.fill(words.planner, run.source, toolbox=run.toolbox.describe())
    asked = [run.show(planner, f"Question: {run.question}")]
    for _ in range(attempts):
        text = await run.ask("planner", asked)
        plan = parse_plan(text)
        if plan.problem:
            run.trace.failures["plan_unreadable"] += 1
            asked = _tell_problem(asked, text, plan.problem)
            continue
        calls = [call for call in plan.calls if call.name.casefold() != "terminate"]
        seen = [await run.call(call) for call in calls]
        failed = [one for one in seen if one.failure]
        if not failed or (run.mode == "sane" and len(failed) < len(seen)):
            return await _answer(run, calls, seen)
        asked = _tell_problem(asked, text, "; ".join(one.message for one in failed))
    run.trace.failures["attempts_spent"] += 1
    fallback = words.fill(words.fallback, run.source)
    return find_answer(await run.ask("fallback", [run.show(fallback, f"Question: {run.question}")]))


async def _answer(run: AgentRun, calls: list[ToolCall], seen: list[Observation]) -> str:
    words = run.words
    plan = json.dumps([{"name": call.name, "arguments": dict(call.arguments)} for call in calls], ensure_ascii=False)
    results = "\n".join(f"{one.name}: {write_observation(one)}" for one in seen)
    executor = words.fill(words.executor, run.source, plan=plan, results=results)
    question = f"Question: {run.question}"
    steps = await run.ask("executor", [run.show(executor, question)]) if calls else ""
    summariser = words.fill(words.summariser, run.source, steps=f"{steps}\n{results}" if calls else "none")
    return find_answer(await run.ask("summariser", [run.show(summariser, question)]))


def _tell_problem(asked: list[Message], text: str, problem: str) -> list[Message]:
    """The same request with the failed attempt and what was wrong with it; no more than the last attempt is told."""
    told = f"This plan cannot be carried out: {problem}. Give another plan in the same format."
    return [asked[0], Message.of("assistant", text or "(nothing)"), Message.of("user", told)]
