"""`program:COMMAND`: a program of the user's that reads a prompt on standard input and prints its answer.

The prompt is one JSON object: `text`, and `images` as base64 of JPEG or PNG, in the order in which they are shown.
"""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
from asyncio.subprocess import PIPE

from vgbench_gen.backends.base import Backend, Reply
from vgbench_gen.backends.served import Call, Failed, Served
from vgbench_gen.backends.spec import BackendOptions, Needs, Provider, providers


class Program(Served):
    """One process for each request."""

    async def _send(self, call: Call) -> Reply:
        prompt = {"text": call.text, "images": [base64.b64encode(image.data).decode() for image in call.images]}
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(self.model), stdin=PIPE, stdout=PIPE)
        except OSError as error:
            raise Failed("wrong_request", f"{self.spec}: {error}. Name a program.", for_all=True) from error
        try:
            said, _ = await process.communicate(json.dumps(prompt).encode())
        finally:  # also where the time is up
            if process.returncode is None:
                process.kill()
        if process.returncode:
            raise Failed("api_error", f"{self.spec}: ended with status {process.returncode}.", "later")
        return Reply(said.decode("utf-8", "replace").strip(), "stop", self.model)


@providers.register("program")
class ProgramProvider(Provider):
    def needs(self, name: str) -> Needs:
        return Needs(f"{name}:COMMAND", needs_key=False)

    def open(self, name: str, model: str, options: BackendOptions) -> Backend:
        return Program(f"{name}:{model}", name, model, "", options)
