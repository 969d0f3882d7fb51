"""Options of the verbs that ask a model, and what they all do with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vgbench_gen.backends.spec import BackendOptions, LocalOptions

ModelSpec = Annotated[
    str,
    typer.Option(
        "--model", metavar="SPEC", help="Who is asked: deepseek:deepseek-flash, openai:gpt-4o, azure:DEPLOYMENT, …"
    ),
]
Concurrency = Annotated[
    int, typer.Option("--concurrency", metavar="N", min=1, max=1024, help="Requests under way at once, at most.")
]
RequestsPerMinute = Annotated[
    int, typer.Option("--rpm", metavar="N", min=0, help="Requests a minute, at most; 0 for no limit.")
]
TokensPerMinute = Annotated[
    int, typer.Option("--tpm", metavar="N", min=0, help="Tokens a minute, at most; 0 for no limit.")
]
BudgetUsd = Annotated[
    float | None, typer.Option("--budget", metavar="USD", help="Ask nothing more once this may be spent.")
]
BudgetTokens = Annotated[
    int | None, typer.Option("--budget-tokens", metavar="N", min=1, help="The same, counted in tokens.")
]
CacheFile = Annotated[
    Path | None,
    typer.Option("--cache", metavar="FILE", help="File of replies: what was answered is not asked again."),
]
TimeoutSeconds = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Longest wait for one answer.")
]
Retries = Annotated[int, typer.Option("--retries", metavar="N", min=0, help="After failures that may pass.")]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key-file", metavar="FILE", help="Holds the key, or a line NAME=key; else the environment does."),
]
BaseUrl = Annotated[
    str, typer.Option("--base-url", metavar="URL", help="Of the server, instead of the provider's own.")
]
PricesFile = Annotated[
    Path | None, typer.Option("--prices", metavar="FILE", help="TOML file of prices, looked at before the shipped one.")
]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", help="Where a local model (hf:) runs: auto, cpu, cuda, cuda:1.")
]
Dtype = Annotated[
    str, typer.Option("--dtype", metavar="NAME", help="Of its weights: auto, float32, bfloat16 or float16.")
]
BatchSize = Annotated[
    int, typer.Option("--batch-size", metavar="N", min=1, max=1024, help="Prompts in one pass of a local model.")
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let Python code that comes with a local model run.")
]

DEFAULT_MODEL = "deepseek:deepseek-flash"
DEFAULT_CONCURRENCY = 16
DEFAULT_TIMEOUT_S = 120.0
DEFAULT_RETRIES = 5


def backend_options(
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    rpm: int = 0,
    tpm: int = 0,
    budget: float | None = None,
    budget_tokens: int | None = None,
    cache: Path | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    retries: int = DEFAULT_RETRIES,
    key_file: Path | None = None,
    base_url: str = "",
    prices: Path | None = None,
    local: LocalOptions | None = None,
) -> BackendOptions:
    """What the options of a command line mean.

    Raises:
        ConfigError: a budget that is not above 0, or a number that no request can be sent with.
    """
    from vgbench_gen.backends.spec import BackendOptions, LocalOptions
    from vgbench_gen.core.config import parse_config
    from vgbench_gen.core.errors import ConfigError

    if budget is not None and not 0 < budget < float("inf"):
        raise ConfigError(f"--budget {budget}: expected an amount above 0. Leave it out for no bound.")
    given = {
        "concurrency": concurrency,
        "rpm": rpm,
        "tpm": tpm,
        "budget_usd": budget,
        "budget_tokens": budget_tokens,
        "cache": cache,
        "timeout_s": timeout,
        "retries": retries,
        "key_file": key_file,
        "base_url": base_url,
        "prices": prices,
        "local": (local or LocalOptions()).model_dump(),
    }
    return parse_config(given, BackendOptions, "options of the requests")


def local_options(device: str, dtype: str, batch_size: int, trust_remote_code: bool) -> LocalOptions:
    """What the options for a model on this machine mean.

    Raises:
        ConfigError: no such device or dtype.
    """
    from vgbench_gen.backends.spec import LocalOptions
    from vgbench_gen.core.config import parse_config

    given = {"device": device, "dtype": dtype, "batch_size": batch_size, "trust_remote_code": trust_remote_code}
    return parse_config(given, LocalOptions, "options of the local model")
