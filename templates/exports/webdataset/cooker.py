"""Samples of this folder for a task encoder of Megatron energon (7.4): a conversation with its images.

Energon prints what goes wrong in a sample, leaves it out and goes on. With `raise_on_errors` the run ends instead.
`python cooker.py`, in this folder, reads every sample and says how many there are.
"""

from __future__ import annotations

from typing import Any

from megatron.energon import (
    Cooker,
    DefaultTaskEncoder,
    FileStore,
    Sample,
    SampleDecoder,
    WorkerConfig,
    basic_sample_keys,
    cooker,
    edataclass,
    get_loader,
    get_train_dataset,
    stateless,
)


@edataclass
class Conversation(Sample):
    """A question with its images and its answer."""

    id: str
    messages: list[dict[str, Any]]
    """Typed content, as chat templates take it: text, or an image (the name of its file) in its place."""
    images: list[Any]
    """PIL images, in the order of their places."""
    solution: str
    """What a reward needs, as JSON."""


@stateless
@cooker(need_primary=True)
def cook(sample: dict[str, Any], primary: FileStore) -> Conversation:
    """Make a conversation of the files of a sample, which energon has decoded; `primary`: those of all samples."""
    row = sample["json"]
    parts = [part for message in row["messages"] for part in message["content"]]
    return Conversation(
        **basic_sample_keys(sample),
        id=row["id"],
        messages=row["messages"],
        images=[find_image(part["image"], sample, primary) for part in parts if part["type"] == "image"],
        solution=row["solution"],
    )


def find_image(name: str, sample: dict[str, Any], primary: FileStore) -> Any:
    """The image of a name: in its own sample, or in the first one that shows it."""
    key, _, kind = name.partition(".")
    return sample[kind] if key == sample["__key__"] else primary[name][0]


class ConversationEncoder(DefaultTaskEncoder[Conversation, Conversation, list[Conversation], list[Conversation]]):
    """Override `encode_sample` with the processor of your model, and `batch`."""

    decoder = SampleDecoder(image_decode="pilrgb")
    cookers = (Cooker(cook, has_subflavors={"vgbench": True}),)

    def batch(self, samples: list[Conversation]) -> list[Conversation]:
        """Leave samples as they are."""
        return samples


def raise_on_errors(error: Exception, sample: Any, sources: Any = None) -> None:
    """For `WorkerConfig(global_error_handler=...)`."""
    raise error


def read_once(worker_config: WorkerConfig) -> Any:
    """A loader of every sample once, in batches of one."""
    dataset = get_train_dataset(
        "metadataset.yaml",
        worker_config=worker_config,
        batch_size=1,
        shuffle_buffer_size=None,
        max_samples_per_sequence=None,
        task_encoder=ConversationEncoder(),
        repeat=False,
    )
    return get_loader(dataset)


if __name__ == "__main__":
    once = WorkerConfig(rank=0, world_size=1, num_workers=0, global_error_handler=raise_on_errors)
    print(sum(len(batch) for batch in read_once(once)), "samples")
