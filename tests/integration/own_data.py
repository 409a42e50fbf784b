"""Data of one's own for the task tiny_lm, and a recipe's options that fit a handful of examples."""

import json
from collections.abc import Iterable

UNSUPERVISED = -100
SHORT, LONG = 16, 80  # lengths on both sides of the sampler's split
# One example a shard and window: one short and one long one are enough.
TINY = (
    "--set", "window.batch_size=1", "--set", "window.accumulation=1", "--set", "run.device=cpu",
    "--set", "run.timeout=3",
)  # fmt: skip


def example(length: int, masked: bool = False) -> dict:
    ids = [(7 * position + length) % 4 for position in range(length)]
    return {"input_ids": ids, "labels": [UNSUPERVISED] * length if masked else ids[1:] + ids[:1], "split": "train"}


def lines(examples: Iterable[dict]) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in examples)
