"""Backends by name: `openai:gpt-4o`, `vllm:http://host:8000/v1#name`, `scripted:FILE` and the like."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from vgbench_gen.backends.base import Backend
from vgbench_gen.core.config import Config, Flag
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.registry import Registry

_MOST = 1 << 53  # what floats can count
_LONGEST_S = 7 * 24 * 3600.0


class LocalOptions(Config):
    """How a model on this machine runs (`hf:`)."""

    device: Annotated[str, Flag("Device of a local model (hf:): auto, cpu, cuda, cuda:1.", "NAME", "Model")] = Field(
        default="auto", pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$"
    )
    """Where it runs; auto takes GPUs where there are any."""

    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Flag("Data type of its weights: auto, float32, bfloat16 or float16.", "NAME", "Model"),
    ] = "auto"

    batch_size: Annotated[int, Flag("Batch size of a local model.", "N", "Limits")] = Field(default=8, ge=1, le=1024)

    trust_remote_code: Annotated[bool, Flag("Run Python code of a local model's folder.", "", "Model")] = False


class BackendOptions(Config):
    """How requests are sent. Nothing here changes what is asked; of all this only the URL is part of the cache key."""

    concurrency: Annotated[int, Flag("Maximum concurrent requests.", "N", "Limits")] = Field(default=16, ge=1, le=1024)

    rpm: Annotated[int, Flag("Requests per minute; 0 = no limit.", "N", "Limits")] = Field(default=0, ge=0, le=_MOST)

    tpm: Annotated[int, Flag("Tokens per minute; 0 = no limit.", "N", "Limits")] = Field(default=0, ge=0, le=_MOST)

    budget_usd: Annotated[
        float | None, Flag("Stop sending requests before this amount is exceeded.", "USD", "Limits", "--budget")
    ] = Field(default=None, gt=0)
    """No new request starts when what is left of it may not suffice for one more; None for no bound."""

    budget_tokens: Annotated[
        int | None, Flag("Stop sending requests before this many tokens are exceeded.", "N", "Limits")
    ] = Field(default=None, gt=0, le=_MOST)

    cache: Annotated[Path | None, Flag("Cache; requests in it are not sent again.", "FILE", "Limits")] = None

    timeout_s: Annotated[float, Flag("Maximum wait for one reply.", "SECONDS", "Limits", "--timeout")] = Field(
        default=120.0, gt=0, le=_LONGEST_S
    )

    retries: Annotated[int, Flag("Retries after a transient failure.", "N", "Limits")] = Field(default=5, ge=0)

    key_file: Annotated[
        Path | None, Flag("File with the API key, or a line NAME=key; default: the environment.", "FILE", "Model")
    ] = None

    base_url: Annotated[str, Flag("URL of the server, if not the provider's.", "URL", "Model")] = Field(
        default="", repr=False
    )
    """Address instead of the provider's. It may hold a password: records take the `spec` of the backend, never this."""

    prices: Annotated[Path | None, Flag("TOML file with prices that override the shipped ones.", "FILE", "Model")] = (
        None
    )
    """A TOML file laid out as `prices.toml`, looked at before that one."""

    image_edits: Literal["auto", "endpoint", "chat"] = "auto"
    """How images are changed: by the endpoint made for it, in a chat, or as the table of providers says."""

    local: LocalOptions = Field(default_factory=LocalOptions)
    """For models that run on this machine."""

    keyless: bool = False
    """Nothing will be asked, so no key is demanded."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a provider wants before it can be used."""

    example: str
    keys: tuple[str, ...] = ()
    """Environment variables, one of which holds the key."""
    needs_key: bool = True
    """Whether one of them must."""
    variables: tuple[str, ...] = ()
    """Other environment variables that it reads."""
    extra: str = ""
    """The extra of this package that brings `packages`."""
    packages: tuple[str, ...] = ()
    """Packages that must be importable."""
    without_key: str = "no key needed"
    """What is said where it names no key of its own."""


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
