"""`unified:MODULE:FACTORY`: the user's own model in this process, which answers and edits images.

MODULE is imported, also from the working folder; FACTORY() returns an object with

    answer(images: list[bytes], text: str) -> str
    edit(images: list[bytes], prompt: str) -> bytes

where images are encoded as JPEG or PNG, in the order of the prompt. Both are called from one thread, one request at a
time. The factory is called when the first reply is not in the cache.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from vgbench_gen.backends._call import Call, Failed
from vgbench_gen.backends._keys import cover_line
from vgbench_gen.backends.base import Backend, Reply
from vgbench_gen.backends.served import Served
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import digest_bytes

_LONGEST_S = 24 * 3600.0  # practically no time limit, because a thread cannot be stopped


class Unified(Protocol):
    """The object that a factory returns."""

    def answer(self, images: list[bytes], text: str) -> str:
        """The model's reply."""
        ...

    def edit(self, images: list[bytes], prompt: str) -> bytes:
        """One encoded image, edited from the images as the prompt says."""
        ...


class UnifiedLocal(Served):
    """A backend around the user's object.

    Args:
        spec: as on the command line.
        model: MODULE:FACTORY, the name in replies and cache keys.
        factory: makes the object.
        version: of its code, for cache keys.
        options: of requests; there is no time limit.
    """

    images_out = True
    edits = True

    def __init__(
        self, spec: str, model: str, factory: Callable[[], Unified], version: str, options: BackendOptions
    ) -> None:
        chosen = options.model_copy(update={"timeout_s": _LONGEST_S, "concurrency": 1})
        super().__init__(spec, "unified", model, version, chosen)
        self._factory = factory
        self._made: Unified | None = None
        self._thread = ThreadPoolExecutor(1, "vgbench-unified")

    async def _send(self, call: Call) -> Reply:
        images = [image.data for image in call.images]
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._say, call, images)

    def _say(self, call: Call, images: Sequence[bytes]) -> Reply:
        """The reply of the user's object; called in its thread.

        Raises:
            Failed: the user's code raises an exception or returns a wrong type.
        """
        if self._made is None:
            try:
                self._made = self._factory()
            except Exception as exc:
                raise Failed(
                    "wrong_request", f"{self.spec}: the factory failed ({_describe_error(exc)}).", for_all=True
                ) from exc
        result: object
        name, expected = ("edit", bytes) if call.edit else ("answer", str)
        try:
            result = getattr(self._made, name)(list(images), call.text)
        except Exception as exc:
            raise Failed("api_error", f"{self.spec}: {name}() failed ({_describe_error(exc)}).") from exc
        if not isinstance(result, expected):
            message = f"{self.spec}: {name}() gave a {type(result).__name__}; expected {expected.__name__}."
            raise Failed("bad_reply", message)
        if isinstance(result, bytes):
            return Reply("", "stop", self.model, images=(result,))
        return Reply(str(result), "stop", self.model)

    async def close(self) -> None:
        await super().close()
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._made = None


def _describe_error(exc: Exception) -> str:
    return cover_line(f"{type(exc).__name__}: {exc}")


@providers.register("unified")
class UnifiedProvider(Provider):
    """`unified:MODULE:FACTORY`."""

    def needs(self, name: str) -> Needs:
        return Needs(f"{name}:MODULE:FACTORY", needs_key=False, without_key="what FACTORY asks for")

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        spec = f"{name}:{model}"
        module, _, factory = model.partition(":")
        if not module or not factory:
            raise ConfigError(f"{spec}: found no factory; expected {name}:MODULE:FACTORY.")
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)
        try:
            imported = importlib.import_module(module)
        except Exception as exc:
            raise ConfigError(f"{spec}: {module} cannot be imported ({_describe_error(exc)}). Check its name.") from exc
        make = getattr(imported, factory, None)
        if not callable(make):
            raise ConfigError(f"{spec}: found no function {factory} in {module}; expected one that makes the model.")
        file = Path(imported.__file__ or "")
        version = digest_bytes(file.read_bytes()) if file.is_file() else ""
        return UnifiedLocal(spec, model, make, version, options)
