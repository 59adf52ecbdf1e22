"""Our definitions of BERT, GPT-2, XLNet and Llama, for machines without the `transformers` package.

The layers do the arithmetic of the published architectures with the operations of common model code. Details without cost
(initial values, dropout rates) are simplified. All models take token ids [batch, length] and labels of the same shape, and
return the mean loss.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class TransformerShape:
    """Extents of one model; `family` is bert, gpt2, xlnet or llama."""

    family: str
    hidden_size: int
    n_layers: int
    n_heads: int
    ffn_size: int
    vocab_size: int
    max_tokens: int = 2048
    n_kv_heads: int = 0  # 0: n_heads

    @property
    def kv_heads(self) -> int:
        return self.n_kv_heads or self.n_heads

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.n_heads


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Attention of [batch, heads, length, head_dim]; fused where PyTorch has it."""
    if hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if causal:
        length = q.shape[-2]
        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1),
                                    float("-inf"))
    return functional.softmax(scores, -1) @ v


class RMSNorm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


class SelfAttention(nn.Module):
    """One projection for queries, keys and values; rotary embedding for llama."""

    def __init__(self, s: TransformerShape) -> None:
        super().__init__()
        self.shape = s
        self.causal = s.family != "bert"
        bias = s.family != "llama"
        self.qkv = nn.Linear(s.hidden_size, (s.n_heads + 2 * s.kv_heads) * s.head_dim, bias=bias)
        self.out = nn.Linear(s.hidden_size, s.hidden_size, bias=bias)

    def forward(self, x: torch.Tensor, rotary: "tuple[torch.Tensor, torch.Tensor] | None") -> torch.Tensor:
        s = self.shape
        batch, length, _ = x.shape
        parts = self.qkv(x).split([s.n_heads * s.head_dim, s.kv_heads * s.head_dim, s.kv_heads * s.head_dim], -1)
        q, k, v = (part.view(batch, length, -1, s.head_dim).transpose(1, 2) for part in parts)
        if rotary is not None:
            q, k = rotate(q, *rotary), rotate(k, *rotary)
        if s.kv_heads != s.n_heads:
            k, v = (t.repeat_interleave(s.n_heads // s.kv_heads, dim=1) for t in (k, v))
        y = attend(q, k, v, self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, -1))


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class RelativeAttention(nn.Module):
    """Attention of XLNet: scores of content and of relative position, each with a bias."""

    def __init__(self, s: TransformerShape) -> None:
        super().__init__()
        self.shape = s
        self.q, self.k, self.v, self.r, self.out = (
            nn.Linear(s.hidden_size, s.hidden_size, bias=False) for _ in range(5))
        self.content_bias = nn.Parameter(torch.randn(s.n_heads, 1, s.head_dim) * 0.02)
        self.position_bias = nn.Parameter(torch.randn(s.n_heads, 1, s.head_dim) * 0.02)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        s = self.shape
        batch, length, _ = x.shape

        def heads(t: torch.Tensor) -> torch.Tensor:
            return t.view(t.shape[0], t.shape[1], s.n_heads, s.head_dim).transpose(1, 2)

        q, k, v = heads(self.q(x)), heads(self.k(x)), heads(self.v(x))
        r = heads(self.r(positions))
        content = (q + self.content_bias) @ k.transpose(-2, -1)
        position = (q + self.position_bias) @ r.transpose(-2, -1)
        # Row i of 2 length columns contains offsets from `length` downwards: shift it so that column j means i - j.
        position = position.reshape(batch, s.n_heads, 2 * length, length)[:, :, 1:, :]
        position = position.reshape(batch, s.n_heads, length, 2 * length - 1)[..., :length]
        scores = (content + position) * s.head_dim**-0.5
        y = functional.dropout(functional.softmax(scores, -1), 0.1, self.training) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):
    """Norm before the branch (gpt2, llama) or after it (bert, xlnet)."""

    def __init__(self, s: TransformerShape) -> None:
        super().__init__()
        self.family = s.family
        norm = RMSNorm if s.family == "llama" else nn.LayerNorm
        self.norm1, self.norm2 = norm(s.hidden_size), norm(s.hidden_size)
        self.attention = RelativeAttention(s) if s.family == "xlnet" else SelfAttention(s)
        bias = s.family != "llama"
        self.up = nn.Linear(s.hidden_size, s.ffn_size * (2 if s.family == "llama" else 1), bias=bias)
        self.down = nn.Linear(s.ffn_size, s.hidden_size, bias=bias)

    def feed_forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.family == "llama":
            gate, up = self.up(x).chunk(2, -1)
            return self.down(functional.silu(gate) * up)
        return self.drop(self.down(functional.gelu(self.up(x))))

    def drop(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.family == "llama" else functional.dropout(x, 0.1, self.training)

    def forward(self, x: torch.Tensor, positions: "torch.Tensor | tuple | None") -> torch.Tensor:
        if self.family in ("gpt2", "llama"):
            x = x + self.drop(self.attention(self.norm1(x), positions))
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.drop(self.attention(x, positions)))
        return self.norm2(x + self.feed_forward(x))


class Transformer(nn.Module):
    def __init__(self, s: TransformerShape) -> None:
        super().__init__()
        self.shape = s
        self.embedding = nn.Embedding(s.vocab_size, s.hidden_size)
        learned = s.family in ("bert", "gpt2")
        self.positions = nn.Embedding(s.max_tokens, s.hidden_size) if learned else None
        self.kinds = nn.Embedding(2, s.hidden_size) if s.family == "bert" else None
        self.embedding_norm = nn.LayerNorm(s.hidden_size) if s.family == "bert" else None
        self.layers = nn.ModuleList(Layer(s) for _ in range(s.n_layers))
        norm = {"gpt2": nn.LayerNorm, "llama": RMSNorm}.get(s.family)
        self.final_norm = norm(s.hidden_size) if norm else None
        self.transform = nn.Linear(s.hidden_size, s.hidden_size) if s.family == "bert" else None
        self.transform_norm = nn.LayerNorm(s.hidden_size) if s.family == "bert" else None
        self.head = nn.Linear(s.hidden_size, s.vocab_size, bias=s.family in ("bert", "xlnet"))
        if s.family != "llama":
            self.head.weight = self.embedding.weight
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        s = self.shape
        length = tokens.shape[1]
        x = self.embedding(tokens)
        at = torch.arange(length, device=tokens.device)
        if self.positions is not None:
            x = x + self.positions(at)
        if self.kinds is not None:
            x = x + self.kinds(torch.zeros_like(tokens))
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        if s.family != "llama":
            x = functional.dropout(x, 0.1, self.training)
        extra = self._extra(at, x)
        for layer in self.layers:
            x = layer(x, extra)
        if self.final_norm is not None:
            x = self.final_norm(x)
        if self.transform is not None and self.transform_norm is not None:
            x = self.transform_norm(functional.gelu(self.transform(x)))
        logits = self.head(x)
        if s.family in ("gpt2", "llama"):  # each token predicts the next one
            logits, labels = logits[:, :-1].contiguous(), labels[:, 1:].contiguous()
        return functional.cross_entropy(logits.view(-1, s.vocab_size), labels.view(-1))

    def _extra(self, at: torch.Tensor, x: torch.Tensor) -> "torch.Tensor | tuple | None":
        """Rotation angles for llama, encoded relative positions for xlnet."""
        s = self.shape
        length = at.shape[0]
        if s.family == "llama":
            frequency = 10000.0 ** (-torch.arange(0, s.head_dim, 2, device=at.device) / s.head_dim)
            angle = torch.outer(at.float(), frequency).repeat(1, 2)
            return angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if s.family == "xlnet":
            frequency = 10000.0 ** (-torch.arange(0, s.hidden_size, 2, device=at.device) / s.hidden_size)
            offsets = torch.arange(length, -length, -1, device=at.device).float()
            angle = torch.outer(offsets, frequency)
            return torch.cat((angle.sin(), angle.cos()), -1).to(x.dtype)[None]
        return None


def library_model(s: TransformerShape) -> nn.Module:
    """The same model from the `transformers` package, with random weights. Raises ImportError if it is missing."""
    import transformers

    common = {"vocab_size": s.vocab_size}
    if s.family == "bert":
        config = transformers.BertConfig(hidden_size=s.hidden_size, num_hidden_layers=s.n_layers,
                                         num_attention_heads=s.n_heads, intermediate_size=s.ffn_size,
                                         max_position_embeddings=s.max_tokens, **common)
        return LibraryLoss(transformers.BertForMaskedLM(config))
    if s.family == "gpt2":
        config = transformers.GPT2Config(n_embd=s.hidden_size, n_layer=s.n_layers, n_head=s.n_heads,
                                         n_inner=s.ffn_size, n_positions=s.max_tokens, use_cache=False, **common)
        return LibraryLoss(transformers.GPT2LMHeadModel(config))
    if s.family == "xlnet":
        config = transformers.XLNetConfig(d_model=s.hidden_size, n_layer=s.n_layers, n_head=s.n_heads,
                                          d_inner=s.ffn_size, **common)
        return LibraryLoss(transformers.XLNetLMHeadModel(config))
    config = transformers.LlamaConfig(hidden_size=s.hidden_size, num_hidden_layers=s.n_layers,
                                      num_attention_heads=s.n_heads, num_key_value_heads=s.kv_heads,
                                      intermediate_size=s.ffn_size, max_position_embeddings=s.max_tokens,
                                      use_cache=False, **common)
    return LibraryLoss(transformers.LlamaForCausalLM(config))


class LibraryLoss(nn.Module):
    """Gives models of the library the call of our own models."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=tokens, labels=labels).loss
