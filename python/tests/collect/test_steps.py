import gzip
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch

from stepcast.collect import step_cases, traces
from stepcast.collect.kernels.case import Scope
from stepcast.collect.machine import open_machine
from stepcast.collect.measure_overheads import launch_times, read_kineto
from stepcast.collect.measure_steps import build
from stepcast.collect.models.dlrm import seeded_tables
from stepcast.collect.models.resnet import ResNet
from stepcast.collect.models.transformer import Transformer, TransformerShape


class ModelTest(unittest.TestCase):
    def test_our_own_models_have_the_published_number_of_parameters(self):
        def count(model):
            return sum(p.numel() for p in model.parameters())
        self.assertEqual(count(ResNet()), 25_557_032)
        gpt2 = Transformer(TransformerShape("gpt2", 768, 12, 12, 3072, 50257, 1024))
        self.assertEqual(count(gpt2), 124_439_808)
        bert = Transformer(TransformerShape("bert", 768, 12, 12, 3072, 30522, 512))
        self.assertEqual(count(bert), 109_514_298)

    # Library classes have parameters that training does not use.
    @mock.patch("stepcast.collect.measure_steps.library_model", side_effect=ImportError)
    def test_every_parameter_of_our_own_models_learns(self, _):
        machine = open_machine("cpu")
        for case in step_cases.plan(Scope(quick=True, cpu=True)):
            if case.dtype != "fp32":
                continue
            torch.manual_seed(1)
            training = build(case, machine)
            training.step()
            self.assertEqual(training.implementation, "own")
            parameters = [p for cell in training.step.__closure__ for p in _parameters(cell.cell_contents)]
            self.assertTrue(parameters, case.name)
            for parameter in parameters:
                self.assertIsNotNone(parameter.grad, case.name)

    def test_table_sets_are_seeded_and_different(self):
        self.assertEqual(seeded_tables(1, 0), seeded_tables(1, 0))
        self.assertNotEqual(seeded_tables(1, 0).tables, seeded_tables(1, 1).tables)
        self.assertNotEqual(seeded_tables(1, 0).tables, seeded_tables(2, 0).tables)

    def test_plans_name_every_model_at_two_sizes_or_more(self):
        cases = step_cases.plan(Scope())
        self.assertEqual(len({case.name for case in cases}), len(cases))
        for model in ("bert_base", "gpt2", "xlnet_base", "llama_1b", "resnet50", "dlrm_0", "dlrm_3"):
            for dtype in ("fp32", "bf16"):
                sizes = {(c.batch, c.length) for c in cases if c.model == model and c.dtype == dtype}
                self.assertGreaterEqual(len(sizes), 2, model)


def _parameters(value):
    return value.parameters() if isinstance(value, torch.nn.Module) else []


class TraceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)
        self.x = torch.randn(8, 8)

    def test_a_trace_holds_the_steps_and_is_found_by_its_relative_path(self):
        recorded = traces.record(lambda: self.x.mm(self.x), self.out, "traces/t", False, n_steps=3)
        self.assertEqual(recorded.kineto, "traces/t.kineto.json.gz")
        names = [event["name"] for event in read_kineto(self.out / recorded.kineto)]
        self.assertEqual(names.count("aten::mm"), 3)
        if hasattr(torch.profiler, "ExecutionTraceObserver"):
            with gzip.open(self.out / recorded.execution, "rt") as text:
                self.assertIn("aten::mm", [node["name"] for node in json.load(text)["nodes"]])
        else:
            self.assertIn("ExecutionTraceObserver", recorded.note)

    def test_traces_that_are_too_large_are_removed_and_noted(self):
        recorded = traces.record(lambda: self.x.mm(self.x), self.out, "t", False, max_bytes=10)
        self.assertEqual((recorded.kineto, recorded.execution), ("", ""))
        self.assertIn("larger than", recorded.note)
        self.assertEqual(list(self.out.iterdir()), [])


class LaunchTest(unittest.TestCase):
    def test_latency_on_an_idle_stream_and_gaps_on_a_full_one(self):
        events = []

        def launch(i, launch_ts, kernel_ts, duration):
            events.append({"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": launch_ts, "dur": 3,
                           "args": {"correlation": i}})
            events.append({"cat": "kernel", "name": "k", "ts": kernel_ts, "dur": duration, "args": {"correlation": i}})
        launch(1, 0, 6, 10)
        launch(2, 30, 35, 10)  # idle since 16
        launch(3, 34, 46, 10)  # queued while 2 runs until 45
        launch(4, 38, 58, 10)
        times = launch_times(events)
        self.assertEqual(times["launch_to_kernel_start"], [5])
        self.assertEqual(times["gap_of_a_full_stream"], [1, 2])
        self.assertEqual(times["launch_call"], [3, 3, 3, 3])


if __name__ == "__main__":
    unittest.main()
