#!/usr/bin/env python3
"""Writes a llama model with random weights: what a device does with them takes as long
as with real ones.

    make_model.py 1b-q4_0|8b-q8_0|experts-q4_0 FILE
"""

import os
import random
import struct
import sys

MODELS = {
    # layers, embedding, feed-forward, heads, kv heads, type
    "1b-q4_0": (16, 2048, 8192, 32, 8, "q4_0"),
    "8b-q8_0": (32, 4096, 14336, 32, 8, "q8_0"),
    "experts-q4_0": (16, 1024, 512, 16, 8, "q4_0"),
}
# All, and those that a token uses.
EXPERTS = {"experts-q4_0": (32, 4)}
VOCABULARY = 32000
ALIGNMENT = 32
# GGUF's number of the type, bytes of a block of 32 weights, its scale (F16 of 0.01).
TYPES = {"f32": (0, 128), "router": (0, 128), "q4_0": (2, 18), "q8_0": (8, 34)}
SCALE = struct.pack("<H", 0x211F)
U32, I32, F32, TEXT, LIST = 4, 5, 6, 8, 9


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def metadata(name):
    layers, embedding, feed_forward, heads, kv_heads, _ = MODELS[name]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    filler = VOCABULARY - len(tokens)
    tokens += [f"\u2581filler{number}" for number in range(filler)]
    kinds += [1] * filler
    numbers = {
        "llama.block_count": layers,
        "llama.context_length": 32768,
        "llama.embedding_length": embedding,
        "llama.feed_forward_length": feed_forward,
        "llama.attention.head_count": heads,
        "llama.attention.head_count_kv": kv_heads,
        "llama.rope.dimension_count": embedding // heads,
        "llama.vocab_size": VOCABULARY,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    if name in EXPERTS:
        keys = ("llama.expert_count", "llama.expert_used_count")
        numbers.update(zip(keys, EXPERTS[name]))
    entries = [text(key) + struct.pack("<II", U32, value) for key, value in numbers.items()]
    for key, value in [("general.architecture", "llama"), ("tokenizer.ggml.model", "llama")]:
        entries.append(text(key) + struct.pack("<I", TEXT) + text(value))
    epsilon = "llama.attention.layer_norm_rms_epsilon"
    entries.append(text(epsilon) + struct.pack("<If", F32, 1e-5))

    def values(key, kind, packed):
        head = struct.pack("<IIQ", LIST, kind, VOCABULARY)
        entries.append(text(key) + head + packed)

    values("tokenizer.ggml.tokens", TEXT, b"".join(text(token) for token in tokens))
    values("tokenizer.ggml.scores", F32, bytes(4 * VOCABULARY))
    values("tokenizer.ggml.token_type", I32, struct.pack(f"<{VOCABULARY}i", *kinds))
    return entries


def tensors(name):
    layers, embedding, feed_forward, heads, kv_heads, kind = MODELS[name]
    kv = embedding // heads * kv_heads
    yield "token_embd.weight", (embedding, VOCABULARY), kind
    yield "output_norm.weight", (embedding,), "f32"
    yield "output.weight", (embedding, VOCABULARY), kind
    for layer in range(layers):
        yield f"blk.{layer}.attn_norm.weight", (embedding,), "f32"
        yield f"blk.{layer}.attn_q.weight", (embedding, embedding), kind
        yield f"blk.{layer}.attn_k.weight", (embedding, kv), kind
        yield f"blk.{layer}.attn_v.weight", (embedding, kv), kind
        yield f"blk.{layer}.attn_output.weight", (embedding, embedding), kind
        yield f"blk.{layer}.ffn_norm.weight", (embedding,), "f32"
        experts, suffix = (), ""
        if name in EXPERTS:
            experts, suffix = EXPERTS[name][:1], "_exps"
            yield f"blk.{layer}.ffn_gate_inp.weight", (embedding, *experts), "router"
        into, out = (embedding, feed_forward, *experts), (feed_forward, embedding, *experts)
        yield f"blk.{layer}.ffn_gate{suffix}.weight", into, kind
        yield f"blk.{layer}.ffn_up{suffix}.weight", into, kind
        yield f"blk.{layer}.ffn_down{suffix}.weight", out, kind


def size(shape, kind):
    elements = 1
    for length in shape:
        elements *= length
    return elements // 32 * TYPES[kind][1]


def weights(kind, bytes_wanted):
    """Pieces of random blocks; the same piece comes again and again."""
    if kind == "f32":
        yield struct.pack("<f", 1.0) * (bytes_wanted // 4)
        return
    if kind == "router":
        # Tokens that differ go to experts that differ: what all of them have in common adds up to nothing.
        values = (random.uniform(-1, 1) for _ in range(bytes_wanted // 8))
        yield b"".join(struct.pack("<2f", value, -value) for value in values)
        return
    block = TYPES[kind][1]
    noise = os.urandom(4096 * block)
    piece = b"".join(
        SCALE + noise[at + 2 : at + block] for at in range(0, len(noise), block)
    ) * 256
    while bytes_wanted > 0:
        yield piece[:bytes_wanted]
        bytes_wanted -= len(piece)


def main():
    name, path = sys.argv[1:]
    entries = metadata(name)
    described, offset, all_tensors = [], 0, list(tensors(name))
    for tensor, shape, kind in all_tensors:
        lengths = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        described.append(text(tensor) + lengths + struct.pack("<IQ", TYPES[kind][0], offset))
        offset += -(-size(shape, kind) // ALIGNMENT) * ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(described), len(entries))
    head += b"".join(entries) + b"".join(described)
    with open(path, "wb") as out:
        out.write(head + bytes(-len(head) % ALIGNMENT))
        for _, shape, kind in all_tensors:
            for piece in weights(kind, size(shape, kind)):
                out.write(piece)
            out.write(bytes(-size(shape, kind) % ALIGNMENT))


if __name__ == "__main__":
    main()
