"""Azure OpenAI: `azure:DEPLOYMENT`, with a key or a sign-in.

The environment variables are those of Azure's client: AZURE_OPENAI_ENDPOINT, OPENAI_API_VERSION, and
AZURE_OPENAI_AD_TOKEN or AZURE_OPENAI_API_KEY. Without either of the last two, azure-identity (extra `azure`) signs in
for the scope AZURE_OPENAI_SCOPE. TRAPI_ENDPOINT, TRAPI_API_VERSION and TRAPI_SCOPE are fallbacks for endpoint, version
and scope.

`trapi:DEPLOYMENT` is the same for Microsoft Research's shared instance, as lmms-eval's ROVER module (commit ea61fdc6)
reads it: TRAPI_INSTANCE, TRAPI_DEPLOYMENT, TRAPI_API_VERSION and TRAPI_SCOPE, each with its default, and a sign-in by
`az login` or the machine's identity.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from vgbench_gen.backends._call import Failed
from vgbench_gen.backends._keys import Key, cover_line, find_key, register_proxy_passwords, strip_url
from vgbench_gen.backends.base import Backend
from vgbench_gen.backends.openai_compatible import OpenAICompatible
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    import openai

TRAPI_DEPLOYMENT = "gpt-4o_2024-11-20"
_TRAPI = {"instance": "gcr/shared", "version": "2024-10-21", "scope": "api://trapi/.default"}
_TRAPI_HOST = "https://trapi.research.microsoft.com"
_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


@providers.register("azure")
@providers.register("trapi")
class AzureProvider(Provider):
    """`azure:DEPLOYMENT` and `trapi:DEPLOYMENT`."""

    def needs(self, name: str) -> Needs:
        if name == "trapi":
            variables = ("TRAPI_ENDPOINT", "TRAPI_INSTANCE", "TRAPI_API_VERSION", "TRAPI_SCOPE")
            return Needs("trapi:DEPLOYMENT", (), False, variables, "azure", ("azure.identity",), "signs in to Azure")
        return Needs(
            f"{name}:DEPLOYMENT",
            ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"),
            False,
            ("AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION", "AZURE_OPENAI_SCOPE",
             "TRAPI_ENDPOINT", "TRAPI_API_VERSION", "TRAPI_SCOPE"),
            "azure",
            ("azure.identity",),
        )  # fmt: skip

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        spec = f"{name}:{model}"
        url, version = _find_endpoint(name, spec, options)
        endpoint = strip_url(url, "--base-url" if options.base_url else "AZURE_OPENAI_ENDPOINT or TRAPI_ENDPOINT")
        # The shared instance must not get a key for another resource.
        token = None if options.key_file or name == "trapi" else find_key(("AZURE_OPENAI_AD_TOKEN",), None)
        key = None if token else find_key(() if name == "trapi" else ("AZURE_OPENAI_API_KEY",), options.key_file)
        sign_in = None if key or token or options.keyless else _make_token_provider(spec, name == "trapi")
        register_proxy_passwords()

        def connect(options: BackendOptions) -> openai.AsyncOpenAI:
            import openai

            from vgbench_gen.backends._http import make_http_client

            return openai.AsyncAzureOpenAI(
                azure_endpoint=url,
                azure_deployment=model,
                api_version=version,
                api_key=key.reveal() if key else None,
                azure_ad_token=token.reveal() if token else None,
                azure_ad_token_provider=sign_in,
                max_retries=0,
                timeout=options.timeout_s,
                http_client=make_http_client(url, options.concurrency, options.timeout_s),
                default_headers={"Accept-Encoding": "identity"},
            )

        return OpenAICompatible(spec, name, model, f"{endpoint}?api-version={version}", connect, options)


def _find_endpoint(name: str, spec: str, options: BackendOptions) -> tuple[str, str]:
    """(address, API version) of a resource, from the options and the environment.

    Raises:
        ConfigError: one of them is missing.
    """
    if name == "trapi":
        instance = _find_variable("TRAPI_INSTANCE") or _TRAPI["instance"]
        url = options.base_url or _find_variable("TRAPI_ENDPOINT") or f"{_TRAPI_HOST}/{instance.strip('/')}"
        version = _find_variable("TRAPI_API_VERSION") or _TRAPI["version"]
    else:
        url = options.base_url or _find_variable("AZURE_OPENAI_ENDPOINT", "TRAPI_ENDPOINT")
        version = _find_variable("OPENAI_API_VERSION", "TRAPI_API_VERSION")
    if not url:
        raise ConfigError(f"{spec}: no endpoint. Set AZURE_OPENAI_ENDPOINT (or TRAPI_ENDPOINT) or give --base-url.")
    if not version:
        raise ConfigError(f"{spec}: no API version. Set OPENAI_API_VERSION (or TRAPI_API_VERSION).")
    return url, version


def _find_variable(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _make_token_provider(spec: str, trapi: bool) -> Callable[[], Awaitable[str]]:
    """A function that returns a token of the signed-in user or machine."""
    try:
        from azure.identity import (
            AzureCliCredential,
            ChainedTokenCredential,
            DefaultAzureCredential,
            ManagedIdentityCredential,
            get_bearer_token_provider,
        )
    except ImportError as exc:
        raise ConfigError(
            f"{spec}: {'' if trapi else 'no key. Set AZURE_OPENAI_API_KEY, or '}install the extra for "
            "signing in: pip install 'vgbench-gen[azure]'."
        ) from exc
    # azure-identity would log many lines about a failed sign-in to the terminal before our error.
    logger = logging.getLogger("azure")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    if trapi:
        scope = _find_variable("TRAPI_SCOPE") or _TRAPI["scope"]
        credential = ChainedTokenCredential(AzureCliCredential(), ManagedIdentityCredential())
    else:
        scope = _find_variable("AZURE_OPENAI_SCOPE", "TRAPI_SCOPE") or _AZURE_SCOPE
        credential = DefaultAzureCredential()
    provider = get_bearer_token_provider(credential, scope)

    async def token() -> str:
        from azure.core.exceptions import AzureError

        try:
            # The credential caches and renews tokens; the asynchronous version needs one more package.
            return Key(await asyncio.to_thread(provider), f"the sign-in for {spec}").reveal()
        except AzureError as exc:
            raise Failed("refused_key", f"signing in failed: {cover_line(str(exc))}", for_all=True) from None

    return token
