"""Backends by name: `openai:gpt-4o`, `vllm:http://host:8000/v1#name`, `scripted:FILE` and the like."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from vgbench_gen.backends.base import Backend
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.registry import Registry

_MOST = 1 << 53  # what floats can count
_LONGEST_S = 7 * 24 * 3600.0


class LocalOptions(Config):
    """How a model on this machine runs (`hf:`).

    device: auto (GPUs where there are any), cpu, cuda or cuda:1. dtype: auto (bfloat16 on a GPU, float32 elsewhere),
    float32, bfloat16 or float16. batch_size: prompts that share a forward pass, at most. trust_remote_code: whether
    Python code that comes with the model may run.
    """

    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    batch_size: int = Field(default=8, ge=1, le=1024)
    trust_remote_code: bool = False


class BackendOptions(Config):
    """How requests are sent. Nothing here changes what is asked, so nothing here is part of the cache key but the URL.

    concurrency: requests under way at once, at most. rpm, tpm: requests and tokens a minute, 0 for no limit.
    budget_usd, budget_tokens: no new request starts when the rest may not suffice for one more; None for no bound.
    cache: SQLite file of replies, None for none. timeout_s: of one attempt. retries: after failures that may pass.
    key_file: holds the key, instead of the environment. base_url: instead of the provider's; it may hold a password, so
    records take the backend's `spec`, never this. prices: a TOML file as
    `prices.toml`, looked at before the shipped one. image_edits: how images are changed: by the endpoint made for
    it, in a chat, or as the table of providers says. local: of models that run on this machine. keyless: nothing will
    be asked, so no key is demanded.
    """

    concurrency: int = Field(default=16, ge=1, le=1024)
    rpm: int = Field(default=0, ge=0, le=_MOST)
    tpm: int = Field(default=0, ge=0, le=_MOST)
    budget_usd: float | None = Field(default=None, gt=0)
    budget_tokens: int | None = Field(default=None, gt=0, le=_MOST)
    cache: Path | None = None
    timeout_s: float = Field(default=120.0, gt=0, le=_LONGEST_S)
    retries: int = Field(default=5, ge=0)
    key_file: Path | None = None
    base_url: str = Field(default="", repr=False)
    prices: Path | None = None
    image_edits: Literal["auto", "endpoint", "chat"] = "auto"
    local: LocalOptions = Field(default_factory=LocalOptions)
    keyless: bool = False


@dataclass(frozen=True, slots=True)
class Needs:
    """What a provider wants before it can be used.

    example: a spec of it. keys: environment variables, one of which holds the key; needs_key: whether it must.
    variables: others that it reads. packages: that must be importable, from `extra` of this package.
    """

    example: str
    keys: tuple[str, ...] = ()
    needs_key: bool = True
    variables: tuple[str, ...] = ()
    extra: str = ""
    packages: tuple[str, ...] = ()


class Provider(abc.ABC):
    """A plug-in: opens backends of one name. One instance per registered name, without state."""

    @abc.abstractmethod
    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        """The backend of `name:model`; nothing is sent and no weights are read before it is first asked.

        Raises:
            ConfigError: the key, the address or something else is missing or makes no sense.
        """

    def needs(self, name: str) -> Needs:
        """What `name` wants, for listings."""
        return Needs(f"{name}:MODEL", needs_key=False)


providers: Registry[Provider] = Registry("backend", "vgbench_gen.backends")


def open_backend(spec: str, options: BackendOptions | None = None) -> Backend:
    """The backend that `spec` names.

    Args:
        spec: provider, a colon, and what it serves: a model's name, `URL#name`, a folder or a file.
        options: the defaults where None.

    Raises:
        UnknownNameError: no such provider.
        ConfigError: no model, or as `Provider.open`.
    """
    name, colon, model = spec.partition(":")
    if not colon or not model.strip():
        raise ConfigError(
            f"{spec!r}: found no model; expected PROVIDER:MODEL such as openai:gpt-4o. "
            f"Providers: {', '.join(providers.names())}"
        )
    return providers[name].open(name, model.strip(), options or BackendOptions())
