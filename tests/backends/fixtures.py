"""What the tests of backends share: a clock that only moves when someone sleeps, small images, short requests."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import dataclass, field

from PIL import Image

from vgbench_gen.backends._call import Call
from vgbench_gen.backends._limits import Clock
from vgbench_gen.backends.base import ImagePart, Message, Part, Request, Settings, TextPart
from vgbench_gen.backends.scripted import Scripted, ScriptLine
from vgbench_gen.backends.spec import BackendOptions


@dataclass
class Time:
    """Sleeping moves it on at once."""

    now_s: float = 1000.0
    slept: list[float] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)


def request(text: str, *images: ImagePart, **settings: object) -> Request:
    parts: tuple[Part, ...] = (TextPart(text), *images)
    return Request((Message("user", parts),), Settings.model_validate(settings))


def picture(width: int = 64, height: int = 48, kind: str = "JPEG", shade: int = 0) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (shade, 90, 160)).save(file, kind)
    return file.getvalue()


def scripted(
    play: Callable[[Call], ScriptLine], time: Time | None = None, options: BackendOptions | None = None
) -> Scripted:
    return Scripted("scripted:test", "test", play, options, (time or Time()).clock)
