"""ReAct: the core model thinks and calls one tool a turn, reads what it gives, and ends with its answer.

Limits of the paper (SpatialScore, arXiv 2505.17012, sections 3 and D.5): ten turns, one action each. A reply that
cannot be read, and a call that fails, cost a turn and are told back.
"""

from __future__ import annotations

from vgbench_gen.agent.calls import parse_step
from vgbench_gen.agent.run import AgentRun, find_answer, write_observation
from vgbench_gen.backends.base import Message

TURNS = 10
_STRICT = "Reply with one strict JSON object and nothing else: {problem}."
_LAST = "No calls are left. Give your final answer now, between <answer> and </answer>."


async def run_react(run: AgentRun, turns: int = TURNS) -> str:
    """The answer.

    Raises:
        BackendError: the core model gives no usable reply.
    """
    opening = run.words.fill(run.words.react, run.source, toolbox=run.toolbox.describe(), question=run.question)
    dialogue: list[Message] = [run.show(opening)]
    for _ in range(turns):
        text = await run.ask("react", dialogue)
        dialogue.append(Message.of("assistant", text))
        step = parse_step(text)
        if step.problem:
            # An answer between tags needs no more form than that.
            if run.mode == "sane" and (answer := find_answer(text)) != text.strip():
                return answer
            run.trace.failures["step_unreadable"] += 1
            dialogue.append(Message.of("user", _STRICT.format(problem=step.problem)))
            continue
        if not step.calls:
            dialogue.append(Message.of("user", "OBSERVATION: no action was called. Go on, or end with Terminate."))
            continue
        call, left = step.calls[0], len(step.calls) - 1
        if call.name.casefold() == "terminate":
            return find_answer(str(call.arguments.get("answer", "")))
        before = len(run.book)
        seen = await run.call(call)
        told = f"OBSERVATION: {write_observation(seen)}"
        if left:
            run.trace.failures["too_many_actions"] += 1
            told += f"\nOnly the first action was carried out; {left} more were not. Call one at a time."
        dialogue.append(run.show(told, first=before))
    run.trace.failures["turns_spent"] += 1
    dialogue.append(Message.of("user", _LAST))
    return find_answer(await run.ask("last", dialogue))
