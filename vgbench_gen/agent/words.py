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
    """A file of `templates/agent/`."""

    planner: str
    """Asks for a plan."""
    executor: str
    """Asks what the results of a plan say."""
    summariser: str
    """Asks for the answer."""
    fallback: str
    """Asks for the answer where no plan could be carried out."""
    react: str
    """Opens a dialogue of calls and observations."""
    examples: str
    """For the slot of the same name."""
    variables: dict[str, dict[str, str]]
    """Source of a question -> what fills slots that depend on it; "*" stands for all others."""
    same: dict[str, str] = Field(default_factory=dict)
    """Source -> another one with the same variables."""

    def fill(self, prompt: str, source: str = "", **slots: str) -> str:
        """A prompt with its slots filled once: what fills them is foreign text and holds none.

        Args:
            prompt: one of the above.
            source: of the question, such as "SpatialScore/BLINK".
            slots: what is not a variable of the source.
        """
        known_as = {name.casefold(): name for name in self.variables} | {
            name.casefold(): other for name, other in self.same.items()
        }
        tail = known_as.get(source.rpartition("/")[2].casefold(), "*")
        variables = self.variables.get(tail, {})
        known: Mapping[str, str] = {**variables, "examples": self.examples, **slots}
        return _SLOT.sub(lambda match: known.get(match[1], ""), prompt).strip()


@cache
def load_words(mode: Mode) -> AgentWords:
    """The prompts of a mode.

    Raises:
        ConfigError: the file is not as it must be.
    """
    return load_toml(find_templates_root() / "agent" / f"{mode}.toml", AgentWords)
