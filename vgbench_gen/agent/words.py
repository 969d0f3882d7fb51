"""The prompts of agents, from `templates/agent/`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from pydantic import Field

from vgbench_gen.agent.tool import Mode
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.text.render import find_templates_root

_SLOT = re.compile(r"\{\{ ([a-z_]+) \}\}")


class AgentWords(Config):
    """The prompts in a file of `templates/agent/`."""

    planner: str
    """Asks for a plan."""
    executor: str
    """Asks what the results of a plan mean."""
    summariser: str
    """Asks for the answer."""
    fallback: str
    """Asks for the answer if no plan could be run."""
    react: str
    """Starts a dialogue of calls and observations."""
    examples: str
    """Fills the slot `examples` of other prompts."""
    variables: dict[str, dict[str, str]]
    """Source of a question -> slot -> text; "*" stands for all other sources."""
    same: dict[str, str] = Field(default_factory=dict)
    """Source -> another source with the same variables."""

    def fill(self, prompt: str, source: str = "", **slots: str) -> str:
        """A prompt with its slots filled. Slots inside the filled texts are left as they are.

        Args:
            prompt: one of the fields.
            source: of the question, such as "SpatialScore/BLINK".
            slots: slot -> text, besides `examples` and the variables of the source.
        """
        names = {name: name for name in self.variables} | self.same
        by_source = {source.casefold(): name for source, name in names.items()}
        variables = self.variables.get(by_source.get(source.rpartition("/")[2].casefold(), "*"), {})
        texts: Mapping[str, str] = {**variables, "examples": self.examples, **slots}
        return _SLOT.sub(lambda match: texts.get(match[1], ""), prompt).strip()


@cache
def load_words(mode: Mode) -> AgentWords:
    """The prompts of a mode.

    Raises:
        ConfigError: the file lacks a prompt or has unknown ones.
    """
    return load_toml(find_templates_root() / "agent" / f"{mode}.toml", AgentWords)
