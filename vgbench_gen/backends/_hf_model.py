"""Loads an image-text-to-text model of transformers and continues batches of chats.

Each row of a batch has its own temperature, seed, stop texts and limit, so that requests with different settings share
a forward pass. A row is greedy at temperature 0. Otherwise each token is drawn with one number of the row's own random
generator, so that a reply does not depend on the other rows.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgbench_gen.backends.base import BackendError, FinishReason
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.rng import rng_for

# The supported fields of `extra_body`.
EXTRA_FIELDS = ("chat_template_kwargs", "min_p", "repetition_penalty", "top_k", "top_p")
_NO_LIMIT = 1 << 15  # the most tokens of a reply if neither the request nor the model has a limit


@dataclass(frozen=True, slots=True)
class Chat:
    """A prompt for a local model, with its settings."""

    messages: list[dict[str, Any]]
    """Role and content, as in chat templates. Content is a list of {"type": "text"} and {"type": "image"}."""
    images: int
    """The number of images."""
    temperature: float
    max_tokens: int | None
    stop: tuple[str, ...]
    draw: tuple[int, str]
    """Seed and name of the random generator, used if the temperature is above 0."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """A reply of a local model."""

    text: str
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    """The tokens of the reply, including the one that ended it."""


class LocalModel:
    """A loaded model with its processor, for one thread at a time.

    Args:
        folder: as `save_pretrained` writes it, with weights as safetensors.
        device: auto (all GPUs, or else the CPU), cpu, cuda, cuda:1.
        dtype: auto (bfloat16 on a GPU, float32 elsewhere) or a name of torch such as float16.
        trust_remote_code: whether Python code that comes with the model may run.

    Raises:
        ConfigError: torch or transformers does not load, or the folder holds no usable model.
    """

    def __init__(self, folder: Path, *, device: str = "auto", dtype: str = "auto", trust_remote_code: bool = False):
        source = {"local_files_only": True, "trust_remote_code": trust_remote_code}
        try:
            import torch
            import transformers

            if not sys.stderr.isatty():
                transformers.utils.logging.disable_progress_bar()
            place, on_gpu = _choose_device(torch, device)
            kind = {"auto": "bfloat16" if on_gpu else "float32"}.get(dtype, dtype)
            self._processor = transformers.AutoProcessor.from_pretrained(folder, **source)
            self._model = transformers.AutoModelForImageTextToText.from_pretrained(
                folder, dtype=getattr(torch, kind), device_map=place, use_safetensors=True, **source
            ).eval()
        except (OSError, ValueError, ImportError, KeyError, RuntimeError, AssertionError) as exc:
            raise ConfigError(_explain_failure(folder, exc)) from exc
        self.device, self.dtype = str(self._model.device), kind
        if self._model.config.is_encoder_decoder:
            raise ConfigError(f"hf:{folder}: found an encoder-decoder; expected a model that continues a chat.")
        self._tokenizer: Any = getattr(self._processor, "tokenizer", None)
        if self._tokenizer is None or not (self._processor.chat_template or self._tokenizer.chat_template):
            raise ConfigError(f"hf:{folder}: found no chat template; expected a model tuned for chats (chat_template).")
        self._tokenizer.padding_side = "left"  # generation continues at the right end of all rows
        if self._tokenizer.pad_token is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        words = self._model.config.get_text_config()
        self.context_tokens = int(getattr(words, "max_position_embeddings", 0) or 0)
        # If this version of transformers can, text such as `<image>` in a prompt is not read as a special token.
        known = inspect.signature(self._processor.apply_chat_template).parameters
        self._template = {"sanitize_control_tokens": True} if "sanitize_control_tokens" in known else {}
        self.halt = False  # another thread sets this to end the current batch after its next token

    def reply(self, chats: Sequence[Chat], extra: Mapping[str, Any]) -> list[Continuation]:
        """Continue chats with the same number of images, in one batch. extra: `EXTRA_FIELDS` for all of them.

        Raises:
            BackendError: a prompt does not fit the model (kind wrong_request).
        """
        import torch

        inputs = self._prepare_inputs(chats, extra)
        start = int(inputs["input_ids"].shape[1])
        lengths = inputs["attention_mask"].sum(dim=1).tolist()
        limits = [self._limit(chat, length) for chat, length in zip(chats, lengths, strict=True)]
        rows = _Rows(self, chats, limits, start)
        config = self._make_generation_config(max(limits), extra)
        with torch.inference_mode():
            tokens = self._model.generate(
                **inputs,
                generation_config=config,
                logits_processor=[_Draw(chats, extra)] if any(chat.temperature > 0 for chat in chats) else [],
                stopping_criteria=[rows],
            )
        ends = config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends])
        new = tokens[:, start:].tolist()
        return [
            self._make_continuation(new[i][: limits[i]], chats[i].stop, ends, int(lengths[i]))
            for i in range(len(chats))
        ]

    def text_of(self, tokens: Sequence[int]) -> str:
        """Tokens as text, without special tokens."""
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def free_memory(self) -> None:
        """Release cached GPU memory after a batch that did not fit."""
        import torch

        torch.cuda.empty_cache()

    def _limit(self, chat: Chat, prompt_tokens: int) -> int:
        room = (self.context_tokens or prompt_tokens + _NO_LIMIT) - prompt_tokens
        if room < 1:
            raise BackendError(
                "wrong_request",
                f"the prompt has {prompt_tokens} tokens, with its images; the model holds {self.context_tokens}, reply "
                "included. Send fewer or smaller images, or less text.",
            )
        return min(chat.max_tokens or room, room)

    def _prepare_inputs(self, chats: Sequence[Chat], extra: Mapping[str, Any]) -> Any:
        inputs = self._processor.apply_chat_template(
            [chat.messages for chat in chats],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
            **self._template,
            **extra.get("chat_template_kwargs", {}),
        )
        return inputs.to(self._model.device, dtype=self._model.dtype)

    def _make_generation_config(self, max_tokens: int, extra: Mapping[str, Any]) -> Any:
        import copy

        config = copy.deepcopy(self._model.generation_config)
        # Tokens are drawn by `_Draw`; the model's own sampling settings would only cause warnings.
        config.do_sample, config.num_beams = False, 1
        config.temperature = config.top_k = config.top_p = config.min_p = None
        config.max_length, config.max_new_tokens = None, max_tokens
        config.repetition_penalty = extra.get("repetition_penalty", config.repetition_penalty)
        if config.eos_token_id is None:
            config.eos_token_id = self._tokenizer.eos_token_id
        config.pad_token_id = self._tokenizer.pad_token_id
        return config

    def _make_continuation(
        self, tokens: list[int], stop: tuple[str, ...], ends: set[int], prompt_tokens: int
    ) -> Continuation:
        last = next((i for i, token in enumerate(tokens) if token in ends), None)
        if last is not None:
            tokens = tokens[: last + 1]
        text = self.text_of(tokens)
        cuts = [place for word in stop if (place := text.find(word)) >= 0]
        if cuts:
            text = text[: min(cuts)]
        if stop and cuts and last is None:
            tokens = tokens[: self._find_stop(tokens, stop)]
        return Continuation(text, "stop" if cuts or last is not None else "length", prompt_tokens, len(tokens))

    def _find_stop(self, tokens: list[int], stop: tuple[str, ...]) -> int:
        """The number of tokens after which the text first contains a stop text; the rest of the row is padding."""
        return next(n for n in range(1, len(tokens) + 1) if any(word in self.text_of(tokens[:n]) for word in stop))


class _Rows:
    """Ends each row at its own limit or stop text; a stopping criterion of transformers."""

    def __init__(self, model: LocalModel, chats: Sequence[Chat], limits: Sequence[int], start: int) -> None:
        self._model, self._chats, self._limits, self._start = model, chats, limits, start
        self._ended = [False] * len(chats)

    def __call__(self, tokens: Any, scores: Any, **_: Any) -> Any:
        import torch

        count = tokens.shape[1] - self._start
        for i, chat in enumerate(self._chats):
            if self._model.halt or count >= self._limits[i]:
                self._ended[i] = True
            elif chat.stop and not self._ended[i]:
                text = self._model.text_of(tokens[i, self._start :].tolist())
                self._ended[i] = any(word in text for word in chat.stop)
        return torch.tensor(self._ended, device=tokens.device)


class _Draw:
    """Draws a token for every row with a temperature; a logits processor of transformers that leaves one token."""

    def __init__(self, chats: Sequence[Chat], extra: Mapping[str, Any]) -> None:
        from transformers import MinPLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

        self._temperatures = [chat.temperature for chat in chats]
        self._draws = [rng_for(chat.draw[0], "reply", chat.draw[1]) for chat in chats]
        named = (("top_k", TopKLogitsWarper), ("top_p", TopPLogitsWarper), ("min_p", MinPLogitsWarper))
        self._narrow = [make(extra[name]) for name, make in named if extra.get(name)]

    def __call__(self, tokens: Any, scores: Any) -> Any:
        import torch

        for i, (temperature, rng) in enumerate(zip(self._temperatures, self._draws, strict=True)):
            if temperature <= 0:
                continue
            row = scores[i : i + 1].float() / temperature
            for narrow in self._narrow:
                row = narrow(tokens[i : i + 1], row)
            reach = torch.softmax(row[0].double(), dim=-1).cumsum(dim=-1)
            drawn = int(torch.searchsorted(reach, reach[-1] * rng.random(), right=True))
            scores[i] = -torch.inf
            scores[i, min(drawn, len(reach) - 1)] = 0.0
        return scores


def _choose_device(torch: Any, device: str) -> tuple[Any, bool]:
    """(transformers' `device_map`, whether it is a GPU)."""
    on_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    if device == "auto" and on_gpu and torch.cuda.device_count() > 1:
        return "auto", True
    return {"": "cuda:0" if device in ("auto", "cuda") and on_gpu else device.replace("auto", "cpu")}, on_gpu


def _explain_failure(folder: Path, exc: Exception) -> str:
    text = " ".join(str(exc).split())
    if "trust_remote_code" in text:
        return (
            f"hf:{folder}: the model brings Python code of its own, which would run with your rights. "
            "Read it, then allow it with --trust-remote-code."
        )
    if "safetensors" in text:
        return (
            f"hf:{folder}: found no weights as safetensors; expected *.safetensors (pickled ones can run code, so they "
            "are not read). Convert them: load with torch you trust, then save_pretrained."
        )
    return f"hf:{folder}: cannot be loaded as an image-text-to-text model ({text[:300]})."
