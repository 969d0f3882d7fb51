"""`unified:MODULE:FACTORY`: a model of the user's own in this process that both answers and draws.

MODULE is imported, with the working folder among the places where it may lie; FACTORY() gives an object with

    answer(images: list[bytes], text: str) -> str
    edit(images: list[bytes], prompt: str) -> bytes

where images are encoded as JPEG or PNG and come in the order in which they are shown. Both are called from one thread,
one request at a time. Cache and bookkeeping are those of every backend; the factory is called when the first reply is
not in the cache.
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
from vgbench_gen.backends.base import Backend, Capabilities, Reply
from vgbench_gen.backends.served import Served
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import digest_bytes

_LONGEST_S = 24 * 3600.0  # a thread cannot be stopped, so no attempt is given up


class Unified(Protocol):
    """What a factory gives."""

    def answer(self, images: list[bytes], text: str) -> str:
        """What the model says."""
        ...

    def edit(self, images: list[bytes], prompt: str) -> bytes:
        """The images changed as the prompt says, in one image, encoded."""
        ...


class UnifiedLocal(Served):
    """One object of the user's.

    Args:
        spec: as on the command line.
        model: MODULE:FACTORY, the name in replies and cache keys.
        factory: makes the object.
        version: of its code, for cache keys.
        options: how requests are sent; attempts are neither repeated nor timed.
    """

    capabilities = Capabilities(images_in=True, images_out=True)
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
        """Runs in the object's thread.

        Raises:
            Failed: the user's code failed, or gave something else than it should.
        """
        if self._made is None:
            try:
                self._made = self._factory()
            except Exception as exc:
                raise Failed(
                    "wrong_request", f"{self.spec}: the factory failed ({_describe_error(exc)}).", for_all=True
                ) from exc
        said: object
        try:
            said = (self._made.edit if call.edit else self._made.answer)(list(images), call.text)
        except Exception as exc:
            name = "edit" if call.edit else "answer"
            raise Failed("api_error", f"{self.spec}: {name}() failed ({_describe_error(exc)}).") from exc
        if call.edit:
            if not isinstance(said, bytes):
                raise Failed("bad_reply", f"{self.spec}: edit() gave a {type(said).__name__}; expected bytes.")
            return Reply("", "stop", self.model, images=(said,))
        if not isinstance(said, str):
            raise Failed("bad_reply", f"{self.spec}: answer() gave a {type(said).__name__}; expected str.")
        return Reply(said, "stop", self.model)

    async def close(self) -> None:
        """As `Backend.close`; waits for the thread."""
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
        made = getattr(imported, factory, None)
        if not callable(made):
            raise ConfigError(f"{spec}: found no function {factory} in {module}; expected one that makes the model.")
        file = Path(imported.__file__ or "")
        version = digest_bytes(file.read_bytes()) if file.is_file() else ""
        return UnifiedLocal(spec, model, made, version, options)
