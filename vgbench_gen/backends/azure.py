"""Azure OpenAI: `azure:DEPLOYMENT`, by key or by signing in.

Read is what Azure's client reads: AZURE_OPENAI_ENDPOINT, OPENAI_API_VERSION, and AZURE_OPENAI_AD_TOKEN or
AZURE_OPENAI_API_KEY. Without either of the last two the program signs in through azure-identity (extra `azure`) for the
scope AZURE_OPENAI_SCOPE. TRAPI_ENDPOINT, TRAPI_API_VERSION and TRAPI_SCOPE stand in for endpoint, version and scope.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from vgbench_gen.backends._call import Failed
from vgbench_gen.backends._keys import Key, bare_url, find_key, remember_proxies
from vgbench_gen.backends.base import Backend
from vgbench_gen.backends.openai_compatible import OpenAICompatible
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.errors import ConfigError

if TYPE_CHECKING:
    import openai

_AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


@providers.register("azure")
class AzureProvider(Provider):
    """`azure:DEPLOYMENT`."""

    def needs(self, name: str) -> Needs:
        """As `Provider.needs`; without a key it signs in."""
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
        """As `Provider.open`."""
        spec = f"{name}:{model}"
        url = options.base_url or _variable("AZURE_OPENAI_ENDPOINT", "TRAPI_ENDPOINT")
        version = _variable("OPENAI_API_VERSION", "TRAPI_API_VERSION")
        if not url:
            raise ConfigError(f"{spec}: no endpoint. Set AZURE_OPENAI_ENDPOINT (or TRAPI_ENDPOINT) or give --base-url.")
        if not version:
            raise ConfigError(f"{spec}: no API version. Set OPENAI_API_VERSION (or TRAPI_API_VERSION).")
        endpoint = bare_url(url)
        token = None if options.key_file else find_key(("AZURE_OPENAI_AD_TOKEN",), None)
        key = None if token else find_key(("AZURE_OPENAI_API_KEY",), options.key_file)
        sign_in = None if key or token else _signing_in(spec)
        remember_proxies()

        def connect(options: BackendOptions) -> openai.AsyncOpenAI:
            import openai

            from vgbench_gen.backends._http import http_client

            return openai.AsyncAzureOpenAI(
                azure_endpoint=url,
                azure_deployment=model,
                api_version=version,
                api_key=key.reveal() if key else None,
                azure_ad_token=token.reveal() if token else None,
                azure_ad_token_provider=sign_in,
                max_retries=0,
                timeout=options.timeout_s,
                http_client=http_client(options.concurrency, options.timeout_s),
                default_headers={"Accept-Encoding": "identity"},
            )

        return OpenAICompatible(spec, name, model, f"{endpoint}?api-version={version}", connect, options)


def _variable(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def _signing_in(spec: str) -> Callable[[], Awaitable[str]]:
    """Gives tokens of the signed-in user or machine."""
    try:
        from azure.identity import DefaultAzureCredential, get_bearer_token_provider
    except ImportError as exc:
        raise ConfigError(
            f"{spec}: no key. Set AZURE_OPENAI_API_KEY, or install the extra for signing in: "
            "pip install 'vgbench-gen[azure]'."
        ) from exc
    scope = _variable("AZURE_OPENAI_SCOPE", "TRAPI_SCOPE") or _AZURE_SCOPE
    provider = get_bearer_token_provider(DefaultAzureCredential(), scope)

    async def token() -> str:
        from azure.core.exceptions import AzureError

        try:
            # The credential keeps tokens and renews them; its asynchronous twin needs one more package.
            return Key(await asyncio.to_thread(provider), f"the sign-in for {spec}").reveal()
        except AzureError as exc:
            said = " ".join(str(exc).split())[:300]
            raise Failed("refused_key", f"signing in failed: {said}", for_all=True) from None

    return token
