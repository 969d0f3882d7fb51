"""Train a vision model with unsloth on the rows of this folder, which must be the current one: `python train.py`.

The collator's settings keep every row whole. Left out, `max_seq_length` is the model's (2,048 if you do not say
otherwise): longer rows end the run, or lose their answer. Left out, `resize` shrinks images to a width of 512 pixels
where the model names no size, so that points no longer fit. Without `train_on_responses_only`, questions are learned.
"""

MODEL = "{{ model }}"
MAX_SEQ_LENGTH = 32768
COLLATOR = {
    "max_seq_length": MAX_SEQ_LENGTH,
    "resize": "max",
    "train_on_responses_only": True,
    "instruction_part": "<|im_start|>user\n",
    "response_part": "<|im_start|>assistant\n",
}


def main() -> None:
    """Train adapters on all rows, once."""
    from unsloth import FastVisionModel  # isort: skip  # before trl, which it changes
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer
    from unsloth.trainer import UnslothVisionDataCollator

    model, processor = FastVisionModel.from_pretrained(MODEL, max_seq_length=MAX_SEQ_LENGTH)
    model = FastVisionModel.get_peft_model(model)
    FastVisionModel.for_training(model)
    trainer = SFTTrainer(
        model=model,
        processing_class=processor,
        data_collator=UnslothVisionDataCollator(model, processor, **COLLATOR),
        train_dataset=load_dataset("json", data_files="train.jsonl", split="train"),
        args=SFTConfig(
            output_dir="output",
            per_device_train_batch_size=1,
            gradient_accumulation_steps=8,
            learning_rate=1e-4,
            num_train_epochs=1,
            max_length=MAX_SEQ_LENGTH,
            remove_unused_columns=False,
            dataset_text_field="",
            dataset_kwargs={"skip_prepare_dataset": True},
        ),
    )
    trainer.train()


if __name__ == "__main__":
    main()
