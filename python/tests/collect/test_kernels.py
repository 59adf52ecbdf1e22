import sys
import unittest
from types import SimpleNamespace
from unittest import mock

import torch

from stepcast.collect import kernels, schema
from stepcast.collect.kernels import lookup, products
from stepcast.collect.kernels.case import Case, Prepared, Scope, draw
from stepcast.collect.measure_kernels import measure
from stepcast.collect.sampling import Sampler
from stepcast.collect.skip import Skip
from stepcast.collect.timing import Effort, Timer, quantile, summarize
from collect.support import cpu_bench

QUICK = Scope(quick=True, cpu=True)


class StandInLookups(torch.nn.Module):
    """Looks up what FBGEMM's operator would, from the same arguments, table after table."""

    tables = 0

    def __init__(self, specs, optimizer, learning_rate, weights_precision):
        super().__init__()
        assert (optimizer, weights_precision) == ("rowwise_adagrad", "fp32") and learning_rate > 0
        assert {tuple(place) for _, _, *place in specs} == {("host", "cpu")}
        StandInLookups.tables = len(specs)
        self.weights = torch.nn.ParameterList(torch.zeros(rows, dim) for rows, dim, *_ in specs)

    def init_embedding_weights_uniform(self, low, high):
        for weight in self.weights:
            torch.nn.init.uniform_(weight, low, high)

    def forward(self, indices, offsets):
        bags = (offsets.numel() - 1) // len(self.weights)
        parts = []
        for table, weight in enumerate(self.weights):
            ends = offsets[table * bags:(table + 1) * bags + 1]
            parts.append(torch.nn.functional.embedding_bag(indices[ends[0]:ends[-1]], weight, ends[:-1] - ends[0],
                                                           mode="sum"))
        return torch.cat(parts, 1)


def stand_in_of_fbgemm():
    return {
        "fbgemm_gpu": SimpleNamespace(__path__=[]),
        "fbgemm_gpu.split_table_batched_embeddings_ops_training": SimpleNamespace(
            SplitTableBatchedEmbeddingBagsCodegen=StandInLookups, ComputeDevice=SimpleNamespace(CPU="cpu", CUDA="cuda")),
        "fbgemm_gpu.split_table_batched_embeddings_ops_common": SimpleNamespace(
            EmbeddingLocation=SimpleNamespace(HOST="host", DEVICE="device")),
        "fbgemm_gpu.split_embedding_configs": SimpleNamespace(
            EmbOptimType=SimpleNamespace(EXACT_ROWWISE_ADAGRAD="rowwise_adagrad"),
            SparseType=SimpleNamespace(FP32="fp32", FP16="fp16")),
    }


def first(op, dtype="fp32"):
    return next(case for case in kernels.plan(QUICK)
                if case.op == op and case.dtype == dtype and "fused_update" not in case.shape)


class SchemaTest(unittest.TestCase):
    def test_every_case_of_every_plan_has_the_columns_of_its_operation(self):
        for scope in (Scope(), QUICK):
            for case in kernels.plan(scope):
                needed, optional = schema.SHAPE_COLUMNS[case.op]
                columns = set(case.shape) - {"index_pattern"}
                self.assertEqual(set(needed) - columns, set(), case.name)
                self.assertEqual(columns - set(needed) - set(optional), set(), case.name)

    def test_rows_name_known_columns_and_times_in_order(self):
        bench = cpu_bench()
        for op in ("gemm", "layer_norm", "embedding_bag", "gelu", "conv2d"):
            rows = measure(first(op), bench)
            self.assertEqual(rows[0]["direction"], "forward")
            self.assertGreater(len(rows), 1, op)
            for row in rows:
                self.assertEqual(set(row) - set(schema.KERNEL_COLUMNS), set())
                self.assertTrue(0 < row["time_us_p10"] <= row["time_us"] <= row["time_us_p90"])
                self.assertGreaterEqual(row["n_repetitions"], 3)

    def test_columns_are_named_once(self):
        for columns in (schema.KERNEL_COLUMNS, schema.STEP_COLUMNS, schema.OVERHEAD_COLUMNS):
            self.assertEqual(len(columns), len(set(columns)))


class MeasureTest(unittest.TestCase):
    def test_lookups_record_the_distinct_fraction_of_their_batch(self):
        bench = cpu_bench()
        sampler = Sampler(1, "test")
        found = {}
        for case in draw(12, lambda: lookup._case(QUICK, sampler, "embedding", "fp32")):
            found[case.shape["index_pattern"]] = measure(case, bench)[0]["distinct_fraction"]
        self.assertTrue(all(0 < fraction <= 1 for fraction in found.values()), found)
        self.assertGreater(len(set(found.values())), 3)

    def test_table_batched_lookups_are_fbgemms_where_it_is_installed(self):
        case = next(case for case in kernels.plan(QUICK) if case.label == "table_batched_lookup")
        self.assertEqual(case.shape["fused_update"], 1)
        with self.assertRaisesRegex(Skip, "no fbgemm_gpu"):
            measure(case, cpu_bench())
        with mock.patch.dict(sys.modules, stand_in_of_fbgemm()):
            rows = measure(case, cpu_bench())
        self.assertEqual([row["direction"] for row in rows], ["forward", "backward"])
        for row in rows:
            self.assertEqual((row["op"], row["fused_update"]), ("embedding_bag", 1))
            self.assertTrue(0 < row["distinct_fraction"] <= 1)
        self.assertEqual(StandInLookups.tables, case.shape["tables"])

    def test_what_does_not_fit_is_skipped_before_anything_is_allocated(self):
        prepare = mock.Mock()
        with self.assertRaisesRegex(Skip, "GiB"):
            measure(Case("gemm", "fp32", {"m": 1}, 1e18, prepare), cpu_bench())
        prepare.assert_not_called()

    def test_what_this_pytorch_lacks_is_skipped_by_name(self):
        bench = cpu_bench()
        with mock.patch("stepcast.collect.kernels.case.torch", SimpleNamespace(__version__="1")):
            with self.assertRaisesRegex(Skip, "PyTorch 1 has no float8_e4m3fn"):
                products._fp8(bench, 16, 16, 16)
        with self.assertRaisesRegex(Skip, "TF32"):
            products._linear(bench, "tf32", 16, 16, 16)
        with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", None, create=True):
            with self.assertRaisesRegex(Skip, "scaled_dot_product_attention"):
                measure(first("attention"), bench)

    def test_one_direction_that_fails_leaves_the_other(self):
        def fail():
            raise RuntimeError("not implemented for 'Half'")
        case = Case("gelu", "fp32", {"elements": 1}, 1,
                    lambda bench: Prepared({"forward": lambda: None, "backward": fail}))
        self.assertEqual([row["direction"] for row in measure(case, cpu_bench())], ["forward"])
        case = Case("gelu", "fp32", {"elements": 1}, 1, lambda bench: Prepared({"forward": fail}))
        with self.assertRaisesRegex(Skip, "forward: RuntimeError: not implemented"):
            measure(case, cpu_bench())

    def test_nothing_is_measured_on_zeros(self):
        """Of whatever the calls of a case see and give, most is not zero; so are the gradients that drive backward."""
        bench = cpu_bench()
        made = []
        normal = bench.normal
        bench.normal = lambda *shape, **options: made.append(normal(*shape, **options)) or made[-1]
        for op in ("gemm", "bmm", "layer_norm", "softmax", "gelu", "gated_silu", "cross_entropy", "embedding", "conv2d",
                   "batch_norm", "multiply", "rotary_unfused"):
            made.clear()
            prepared = first(op).prepare(bench)
            self.assertTrue(made)
            for tensor in made:
                self.assertGreater(float(tensor.detach().ne(0).double().mean()), 0.99, op)
            for direction, call in prepared.calls.items():
                results = call()
                for tensor in results if isinstance(results, (tuple, list)) else [results]:
                    if tensor is None or op == "embedding" and direction == "backward":
                        continue  # only the rows that were looked up have a gradient
                    self.assertGreater(float(tensor.detach().ne(0).double().mean()), 0.9, f"{op} {direction}")
                    self.assertGreater(float(tensor.detach().abs().max()), 1e-3, f"{op} {direction}")


class TimingTest(unittest.TestCase):
    def test_quantiles_interpolate(self):
        self.assertEqual(quantile([1, 2, 3, 4], 0.5), 2.5)
        self.assertEqual(quantile([5], 0.9), 5)
        timing = summarize([30, 10, 20])
        self.assertEqual((timing.time_us, timing.p10_us, timing.p90_us, timing.n), (20, 12, 28, 3))

    def test_repetitions_follow_the_effort(self):
        timer = Timer(torch.device("cpu"))
        calls = []
        timing = timer.measure(lambda: calls.append(1), Effort(budget_s=1, warm_up_s=0, least=2, most=7))
        self.assertEqual(timing.n, 7)
        self.assertGreater(len(calls), 7)

    def test_on_a_gpu_every_repetition_starts_flushed_and_behind_a_pause(self):
        log = []

        class Event:
            def __init__(self, enable_timing):
                self.at = None

            def record(self):
                self.at = len(log)
                log.append("event")

            def elapsed_time(self, end):
                return float(end.at - self.at)  # ms

        timer = Timer(torch.device("cpu"))
        timer.is_cuda, timer._cycles_per_us = True, 1000.0
        timer._flush = mock.Mock(bitwise_not_=lambda: log.append("flush"))
        with mock.patch.multiple(torch.cuda, Event=Event, synchronize=lambda *_: None,
                                 _sleep=lambda cycles: log.append("pause" if cycles >= 20_000 else "short")):
            timing = timer.measure(lambda: log.append("call"), Effort(budget_s=1, warm_up_s=0, least=2, most=4))
        self.assertEqual(log[-20:], ["flush", "pause", "event", "call", "event"] * 4)
        self.assertEqual((timing.time_us, timing.n, timer.cache), (2000, 4, "flushed"))


if __name__ == "__main__":
    unittest.main()
