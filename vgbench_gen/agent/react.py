"""ReAct: in each turn the core model thinks, calls one tool and reads the observation; `Terminate` gives its answer.

Limits of the paper (SpatialScore, arXiv 2505.17012, sections 3 and D.5): ten turns, one action each. An unreadable
reply and a failed call use up a turn, and the model is told why. In mode `official` a summariser reads all turns and
answers; in mode `sane` the answer of `Terminate` is the answer (`docs/agent.md#official-and-sane`).
"""

from __future__ import annotations

import json

from vgbench_gen.agent.calls import ToolCall, parse_step
from vgbench_gen.agent.run import AgentRun, find_answer, has_answer, write_observation
from vgbench_gen.backends.base import Message, TextPart

TURNS = 10
_STRICT = "Reply with one strict JSON object and nothing else: {problem}."
_LAST = "No calls are left. Give your final answer now, between <answer> and </answer>."


async def run_react(run: AgentRun, turns: int) -> str:
    """The answer.

    Raises:
        BackendError: the core model gives no usable reply.
    """
    opening = run.words.fill(run.words.react, run.source, toolbox=run.toolbox.describe(), question=run.question)
    dialogue: list[Message] = [run.show(opening)]
    for _ in range(turns):
        text = await run.ask("react", dialogue)
        dialogue.append(Message.of("assistant", text or "(nothing)"))
        step = parse_step(text)
        # An answer between tags counts even outside the JSON form, if nothing is called.
        if run.mode == "sane" and not step.calls and has_answer(text):
            return find_answer(text)
        if step.problem:
            run.trace.failures["step_unreadable"] += 1
            dialogue.append(Message.of("user", _STRICT.format(problem=step.problem)))
            continue
        if not step.calls:
            dialogue.append(Message.of("user", "OBSERVATION: no action was called. Go on, or end with Terminate."))
            continue
        call, unused = step.calls[0], len(step.calls) - 1
        if call.name.casefold() == "terminate" and (answer := _read_terminate(call)):
            return find_answer(answer) if run.mode == "sane" else await _summarise(run, dialogue)
        images_before = len(run.book)
        message = f"OBSERVATION: {write_observation(await run.call(call))}"
        if unused:
            run.trace.failures["too_many_actions"] += 1
            message += f"\nOnly the first action was carried out; {unused} more were not. Call one at a time."
        dialogue.append(run.show(message, first=images_before))
    run.trace.failures["turns_spent"] += 1
    if run.mode == "official":
        return await _summarise(run, dialogue)
    dialogue.append(Message.of("user", _LAST))
    return find_answer(await run.ask("last", dialogue))


def _read_terminate(call: ToolCall) -> str:
    """The answer of a call of Terminate; "" if it has none, which then fails as any call with wrong arguments."""
    answer = call.arguments.get("answer")
    if answer is None:
        return ""
    return answer.strip() if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


async def _summarise(run: AgentRun, dialogue: list[Message]) -> str:
    """The answer of the published summariser, which reads all turns after the opening."""
    turns = [part.text for message in dialogue[1:] for part in message.parts if isinstance(part, TextPart)]
    prompt = run.words.fill(run.words.summariser, run.source, steps="\n".join(turns))
    return find_answer(await run.ask("summariser", [run.show(prompt, f"Question: {run.question}")]))
