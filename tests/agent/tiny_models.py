"""Models of the real classes with few random weights, as `save_pretrained` writes them; needs torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

WORDS = ["red", "chair", "lamp", "dog", "cat", "table", "object", "a"]


def make_detector(folder: Path) -> Path:
    """OWLv2."""
    import torch
    from transformers import Owlv2Config, Owlv2ForObjectDetection

    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Owlv2Config(
        text_config={**small, "vocab_size": 40, "max_position_embeddings": 16},
        vision_config={**small, "image_size": 64, "patch_size": 16},
        projection_dim=16,
    )
    Owlv2ForObjectDetection(config).save_pretrained(folder)
    _save_tokenizer(folder, {word: k + 3 for k, word in enumerate(WORDS)} | {"[PAD]": 0, "[UNK]": 1, "[EOS]": 2})
    _save_images(folder, "Owlv2ImageProcessor", size={"height": 64, "width": 64})
    return folder


def make_grounding_detector(folder: Path) -> Path:
    """Grounding DINO."""
    import torch
    from transformers import GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig

    torch.manual_seed(0)
    backbone = SwinConfig(
        window_size=7, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1], out_indices=[2, 3, 4], image_size=64
    )
    config = GroundingDinoConfig(
        backbone_config=backbone,
        text_config={
            "model_type": "bert",
            "vocab_size": 1100,
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 16,
        },
        d_model=32,
        encoder_layers=1,
        encoder_ffn_dim=16,
        encoder_attention_heads=2,
        decoder_layers=2,
        decoder_ffn_dim=16,
        decoder_attention_heads=2,
        num_queries=10,
        num_feature_levels=4,
        encoder_n_points=2,
        decoder_n_points=2,
    )
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    # The model knows these numbers of BERT's vocabulary.
    marks = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, ".": 1012, "?": 1029}
    _save_tokenizer(folder, marks | {word: k + 200 for k, word in enumerate(WORDS)}, ends=("[CLS]", "[SEP]"))
    _save_images(folder, "GroundingDinoImageProcessor", size={"shortest_edge": 64, "longest_edge": 96})
    return folder


def make_segmenter(folder: Path) -> Path:
    """SAM 2."""
    import torch
    from transformers import Sam2Config, Sam2HieraDetConfig, Sam2Model, Sam2VisionConfig

    torch.manual_seed(0)
    backbone = Sam2HieraDetConfig(
        hidden_size=8,
        num_attention_heads=1,
        image_size=[128, 128],
        blocks_per_stage=[1, 1, 2, 1],
        embed_dim_per_stage=[8, 16, 32, 64],
        num_attention_heads_per_stage=[1, 1, 2, 2],
        window_size_per_stage=[8, 4, 8, 4],
        global_attention_blocks=[3],
        window_positional_embedding_background_size=[4, 4],
    )
    vision = Sam2VisionConfig(
        backbone_config=backbone,
        backbone_channel_list=[64, 32, 16, 8],
        fpn_hidden_size=32,
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
    )
    decoder = {"hidden_size": 32, "num_attention_heads": 2, "mlp_dim": 32, "iou_head_hidden_dim": 32}
    prompts = {"hidden_size": 32, "image_size": 128, "patch_size": 16, "mask_input_channels": 4}
    config = Sam2Config(vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=decoder)
    Sam2Model(config).save_pretrained(folder)
    _save_images(folder, "Sam2ImageProcessor", image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
    return folder


def make_depth_model(folder: Path, kind: str = "metric") -> Path:
    """Depth Anything V2."""
    import torch
    from transformers import DepthAnythingConfig, DepthAnythingForDepthEstimation, Dinov2Config

    torch.manual_seed(0)
    backbone = Dinov2Config(
        hidden_size=16, num_hidden_layers=4, num_attention_heads=2, image_size=70, patch_size=14, mlp_ratio=1,
        out_indices=[1, 2, 3, 4], reshape_hidden_states=False, apply_layernorm=True,
    )  # fmt: skip
    config = DepthAnythingConfig(
        backbone_config=backbone, reassemble_hidden_size=16, neck_hidden_sizes=[8, 8, 8, 8], fusion_hidden_size=8,
        head_hidden_size=8, depth_estimation_type=kind, max_depth=20,
    )  # fmt: skip
    DepthAnythingForDepthEstimation(config).save_pretrained(folder)
    _save_images(
        folder, "DPTImageProcessor", size={"height": 70, "width": 70}, keep_aspect_ratio=True, ensure_multiple_of=14
    )
    return folder


def make_zoe_depth_model(folder: Path) -> Path:
    """ZoeDepth."""
    import torch
    from transformers import BeitConfig, ZoeDepthConfig, ZoeDepthForDepthEstimation

    torch.manual_seed(0)
    backbone = BeitConfig(
        image_size=64, hidden_size=32, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32,
        out_indices=[1, 2, 3, 4], use_relative_position_bias=True, reshape_hidden_states=False,
    )  # fmt: skip
    bins = {"n_bins": 16, "min_depth": 0.001, "max_depth": 10.0, "name": "nyu"}
    config = ZoeDepthConfig(
        backbone_config=backbone, neck_hidden_sizes=[16] * 4, fusion_hidden_size=16, bottleneck_features=16,
        bin_configurations=[bins], num_attractors=[4, 2, 1, 1], bin_embedding_dim=16,
    )  # fmt: skip
    ZoeDepthForDepthEstimation(config).save_pretrained(folder)
    _save_images(
        folder,
        "ZoeDepthImageProcessor",
        size={"height": 64, "width": 64},
        keep_aspect_ratio=True,
        ensure_multiple_of=32,
    )
    return folder


def make_pro_depth_model(folder: Path) -> Path:
    """Depth Pro."""
    import torch
    from transformers import DepthProConfig, DepthProForDepthEstimation

    torch.manual_seed(0)
    encoder = {
        "model_type": "dinov2", "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "image_size": 32,
        "patch_size": 8, "mlp_ratio": 1,
    }  # fmt: skip
    config = DepthProConfig(
        image_model_config=encoder, patch_model_config=encoder, fov_model_config=encoder, patch_size=32,
        fusion_hidden_size=16, intermediate_hook_ids=[2, 1], intermediate_feature_dims=[8, 8],
        scaled_images_feature_dims=[16, 16, 16], merge_padding_value=1, num_fov_head_layers=0, use_fov_model=True,
    )  # fmt: skip
    DepthProForDepthEstimation(config).save_pretrained(folder)
    _save_images(folder, "DepthProImageProcessor", size={"height": 128, "width": 128})
    return folder


def make_matcher(folder: Path) -> Path:
    """SuperPoint with LightGlue."""
    import torch
    from transformers import LightGlueConfig, LightGlueForKeypointMatching, SuperPointConfig

    torch.manual_seed(0)
    points = SuperPointConfig(
        encoder_hidden_sizes=[8, 8, 8, 16], decoder_hidden_size=16, keypoint_decoder_dim=65, descriptor_decoder_dim=16,
        keypoint_threshold=0.0, max_keypoints=60, border_removal_distance=4,
    )  # fmt: skip
    config = LightGlueConfig(
        keypoint_detector_config=points, descriptor_dim=16, num_hidden_layers=2, num_attention_heads=2,
        filter_threshold=0.0, depth_confidence=-1.0, width_confidence=-1.0, intermediate_size=32,
    )  # fmt: skip
    LightGlueForKeypointMatching(config).save_pretrained(folder)
    _save_images(folder, "LightGlueImageProcessor", size={"height": 48, "width": 64}, do_grayscale=True)
    return folder


def make_orientation_model(folder: Path, count: int = 722) -> Path:
    """Orient-Anything with the names of tensors that the published file has, and a head of so many classes."""
    import torch
    from safetensors.torch import save_file
    from transformers import Dinov2Config, Dinov2Model

    torch.manual_seed(0)
    config = Dinov2Config(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=56, patch_size=14, mlp_ratio=1
    )
    encoder = Dinov2Model(config)
    head = torch.nn.ModuleDict(
        {
            "net1": torch.nn.Sequential(torch.nn.Linear(16, count), torch.nn.BatchNorm1d(count), torch.nn.ReLU()),
            "net2": torch.nn.Sequential(torch.nn.Linear(count, count), torch.nn.BatchNorm1d(count)),
        }
    )
    old = {
        "q_proj": "attention.query",
        "k_proj": "attention.key",
        "v_proj": "attention.value",
        "o_proj": "output.dense",
    }
    weights = {f"down_sampler.{name}": tensor for name, tensor in head.state_dict().items()}
    for name, tensor in encoder.state_dict().items():
        for ours, published in old.items():
            name = name.replace(f".attention.{ours}.", f".attention.{published}.")
        weights[f"dinov2.{name}"] = tensor
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    config.save_pretrained(folder)
    _save_images(
        folder,
        "BitImageProcessor",
        size={"shortest_edge": 64},
        crop_size={"height": 56, "width": 56},
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    )
    return folder


def _save_images(folder: Path, kind: str, **settings: Any) -> None:
    told = {"image_processor_type": kind, **settings}
    (folder / "preprocessor_config.json").write_text(json.dumps(told))


def _save_tokenizer(folder: Path, words: dict[str, int], ends: tuple[str, str] | None = None) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if ends is not None:
        first, last = ends
        pairs = [(first, words[first]), (last, words[last])]
        made.post_processor = processors.TemplateProcessing(f"{first} $A {last}", None, pairs)
    PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64
    ).save_pretrained(folder)
