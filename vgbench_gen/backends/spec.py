"""Opens backends by spec, such as `openai:gpt-4o`, `vllm:http://host:8000/v1#name` or `scripted:FILE`."""

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

_MOST = 1 << 53  # the largest integer that floats represent exactly
_LONGEST_S = 7 * 24 * 3600.0


class LocalOptions(Config):
    """Options of a model on this machine (`hf:`)."""

    device: Annotated[str, Flag("Device of a local model (hf:): auto, cpu, cuda, cuda:1.", "NAME", "Model")] = Field(
        default="auto", pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$"
    )
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        Flag("Data type of its weights: auto, float32, bfloat16 or float16.", "NAME", "Model"),
    ] = "auto"

    batch_size: Annotated[int, Flag("Batch size of a local model.", "N", "Limits")] = Field(default=8, ge=1, le=1024)

    trust_remote_code: Annotated[bool, Flag("Run Python code of a local model's folder.", "", "Model")] = False


class BackendOptions(Config):
    """Options of sending requests. They do not change the prompt; only the URL is part of the cache key."""

    concurrency: Annotated[int, Flag("Maximum concurrent requests.", "N", "Limits")] = Field(default=16, ge=1, le=1024)

    rpm: Annotated[int, Flag("Requests per minute; 0 = no limit.", "N", "Limits")] = Field(default=0, ge=0, le=_MOST)

    tpm: Annotated[int, Flag("Tokens per minute; 0 = no limit.", "N", "Limits")] = Field(default=0, ge=0, le=_MOST)

    budget_usd: Annotated[
        float | None, Flag("Stop sending requests before this amount is exceeded.", "USD", "Limits", "--budget")
    ] = Field(default=None, gt=0)
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
    """It may contain a password, so records have the `spec` of the backend instead."""

    prices: Annotated[Path | None, Flag("TOML file with prices that override the shipped ones.", "FILE", "Model")] = (
        None
    )
    image_edits: Literal["auto", "endpoint", "chat"] = "auto"
    """How images are edited: by the endpoint for that, in a chat, or as the table of providers says."""

    local: LocalOptions = Field(default_factory=LocalOptions)

    keyless: bool = False
    """No request will be sent, so no key is required."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Keys, variables and packages that a provider needs."""

    example: str
    """A spec."""
    keys: tuple[str, ...] = ()
    """Environment variables, one of which holds the key."""
    needs_key: bool = True
    variables: tuple[str, ...] = ()
    """Other environment variables that it reads."""
    extra: str = ""
    """The extra of this package that installs `packages`."""
    packages: tuple[str, ...] = ()
    without_key: str = "no key needed"
    """A note for listings if `keys` is empty."""


class Provider(abc.ABC):
    """A plug-in that opens backends of one name: one instance per registered name, without state."""

    @abc.abstractmethod
    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        """The backend of `name:model`; it sends nothing and reads no weights before its first request.

        Raises:
            ConfigError: the key, the address or another setting is missing or invalid.
        """

    def needs(self, name: str) -> Needs:
        """Requirements of the backends of a name, for listings."""
        return Needs(f"{name}:MODEL", needs_key=False)


providers: Registry[Provider] = Registry("backend", "vgbench_gen.backends")


def open_backend(spec: str, options: BackendOptions | None = None) -> Backend:
    """The backend that `spec` names.

    Args:
        spec: provider, a colon, and a model's name, `URL#name`, a folder or a file.
        options: None for the defaults.

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
