"""Plan-Execute: the core model writes a plan of calls, all are run, and it answers from their results.

Limits of the paper (SpatialScore, arXiv 2505.17012, sections 3 and D.4): three attempts at a valid plan, then a direct
answer without tools. In mode `sane` a failed call loses its own result only, not the whole plan.
"""

from __future__ import annotations

import json

from vgbench_gen.agent.calls import ToolCall, parse_plan
from vgbench_gen.agent.run import AgentRun, find_answer, write_observation
from vgbench_gen.agent.workers import Observation
from vgbench_gen.backends.base import Message

ATTEMPTS = 3


async def run_plan_execute(run: AgentRun) -> str:
    """The answer.

    Raises:
        BackendError: the core model gives no usable reply.
    """
    words = run.words
    planner = words.fill(words.planner, run.source, toolbox=run.toolbox.describe())
    opening = run.show(planner, f"Question: {run.question}")
    dialogue = [opening]
    for _ in range(ATTEMPTS):
        text = await run.ask("planner", dialogue)
        plan = parse_plan(text)
        if plan.problem:
            run.trace.failures["plan_unreadable"] += 1
            dialogue = [opening, *_report_problem(text, plan.problem)]
            continue
        calls = [call for call in plan.calls if call.name.casefold() != "terminate"]
        observations = [await run.call(call) for call in calls]
        failed = [observation for observation in observations if observation.failure]
        if not failed or (run.mode == "sane" and len(failed) < len(observations)):
            return await _answer(run, calls, observations)
        dialogue = [opening, *_report_problem(text, "; ".join(observation.message for observation in failed))]
    run.trace.failures["attempts_spent"] += 1
    fallback = words.fill(words.fallback, run.source)
    return find_answer(await run.ask("fallback", [run.show(fallback, f"Question: {run.question}")]))


async def _answer(run: AgentRun, calls: list[ToolCall], observations: list[Observation]) -> str:
    words = run.words
    plan = json.dumps([{"name": call.name, "arguments": dict(call.arguments)} for call in calls], ensure_ascii=False)
    results = "\n".join(f"{observation.name}: {write_observation(observation)}" for observation in observations)
    executor = words.fill(words.executor, run.source, plan=plan, results=results)
    question = f"Question: {run.question}"
    steps = await run.ask("executor", [run.show(executor, question)]) if calls else ""
    summariser = words.fill(words.summariser, run.source, steps=f"{steps}\n{results}" if calls else "none")
    return find_answer(await run.ask("summariser", [run.show(summariser, question)]))


def _report_problem(plan: str, problem: str) -> list[Message]:
    """The failed plan and what was wrong with it, for the next attempt."""
    request = f"This plan cannot be carried out: {problem}. Give another plan in the same format."
    return [Message.of("assistant", plan or "(nothing)"), Message.of("user", request)]
