"""Columns of the files that a run writes. docs/kernels.md of stepcast defines those of kernels.csv."""

from __future__ import annotations

# Shape columns by operation: needed, optional.
_MATRIX = (("m", "n", "k"), ("batch", "bias", "accumulates", "layout", "out_dtype"))
_ROWS = (("rows", "cols"), ())
_ELEMENTS = ((), ("elements", "rows", "cols", "inner", "reads", "writes", "flops_per_element"))
_MOVEMENT = ((), ("elements", "rows", "cols", "inner"))
_NORM = (("rows", "cols"), ("fused",))
_LOOKUP = (("rows", "dim", "bags"), ("tables", "pooling", "distinct_fraction", "fused_update"))
_OPTIMIZER = (("parameters",),
              ("tensors", "implementation", "bytes_read_per_parameter", "bytes_written_per_parameter"))
_TRANSFER = (("bytes",), ("pinned",))

SHAPE_COLUMNS = {
    "gemm": _MATRIX, "bmm": _MATRIX,
    "attention": (("batch", "seq_len_tokens", "n_heads", "head_dim"),
                  ("kv_len_tokens", "n_kv_heads", "value_head_dim", "causal", "window_tokens", "kernel")),
    "conv2d": (("batch", "in_channels", "out_channels", "height", "width", "kernel_height", "kernel_width"),
               ("stride", "padding", "dilation", "groups")),
    "embedding": _LOOKUP, "embedding_bag": _LOOKUP,
    "layer_norm": _NORM, "rms_norm": _NORM, "batch_norm": _NORM,
    "softmax": _ROWS, "log_softmax": _ROWS, "cross_entropy": (("rows", "cols"), ("fused",)), "reduction": _ROWS,
    "copy": _MOVEMENT, "transpose": _MOVEMENT, "concatenate": _MOVEMENT, "fill": _MOVEMENT,
    "add": _ELEMENTS, "multiply": _ELEMENTS, "multiply_scalar": _ELEMENTS, "cast": _ELEMENTS, "relu": _ELEMENTS,
    "gelu": _ELEMENTS, "gated_silu": _ELEMENTS, "dropout": _ELEMENTS, "rotary_unfused": _ELEMENTS,
    "adam": _OPTIMIZER, "adamw": _OPTIMIZER, "sgd": _OPTIMIZER, "momentum_sgd": _OPTIMIZER,
    "memcpy_h2d": _TRANSFER, "memcpy_d2h": _TRANSFER, "memcpy_d2d": _TRANSFER,
}


def _kernel_columns() -> "list[str]":
    shape: "list[str]" = []
    for needed, optional in SHAPE_COLUMNS.values():
        shape += [name for name in needed + optional if name not in shape]
    return (["gpu", "op", "label", "direction", "dtype"] + shape +
            ["time_us", "time_us_p10", "time_us_p90", "n_repetitions", "software", "cache", "index_pattern", "case"])


KERNEL_COLUMNS = _kernel_columns()

STEP_COLUMNS = ["gpu", "model", "implementation", "dtype", "weights_dtype", "optimizer", "batch", "seq_len_tokens",
                "hidden_size", "n_layers", "n_heads", "n_kv_heads", "ffn_size", "vocab_size", "image_size",
                "n_tables", "embedding_dim", "n_parameters", "measured_ms", "measured_ms_p10", "measured_ms_p90", "n",
                "peak_memory_GiB", "kineto_trace", "execution_trace", "description", "software", "case"]

OVERHEAD_COLUMNS = ["gpu", "quantity", "time_us", "time_us_p10", "time_us_p90", "n", "software", "case"]

CLOCK_COLUMNS = ["seconds_since_epoch", "section", "sm_clock_MHz", "memory_clock_MHz", "power_W", "temperature_C"]
