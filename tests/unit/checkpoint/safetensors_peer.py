"""Opens a file with the safetensors package: prints what it holds, and writes it again."""

import hashlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

source, target = sys.argv[1:]
tensors = {}
with safe_open(source, framework="pt") as file:
    metadata = file.metadata()
    for name in sorted(file.keys()):
        tensors[name] = file.get_tensor(name)
for name, tensor in tensors.items():
    raw = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    shape = "x".join(map(str, tensor.shape))
    print(name, str(tensor.dtype).removeprefix("torch."), f"[{shape}]", hashlib.sha256(raw).hexdigest())
print("metadata", metadata)
save_file(tensors, target, metadata)
