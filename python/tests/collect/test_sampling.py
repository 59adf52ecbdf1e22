import unittest

from stepcast.collect import kernels
from stepcast.collect.kernels.case import Scope
from stepcast.collect.sampling import ALIGNMENTS, Sampler


class SamplingTest(unittest.TestCase):
    def test_same_seed_gives_the_same_draws_and_another_does_not(self):
        def draws(seed, name):
            sampler = Sampler(seed, name)
            return [sampler.extent(16, 16384) for _ in range(50)]
        self.assertEqual(draws(1, "gemm"), draws(1, "gemm"))
        self.assertNotEqual(draws(1, "gemm"), draws(2, "gemm"))
        self.assertNotEqual(draws(1, "gemm"), draws(1, "bmm"))

    def test_extents_are_in_range_for_every_alignment(self):
        sampler = Sampler(3, "range")
        for alignment in ALIGNMENTS:
            for _ in range(300):
                self.assertTrue(100 <= sampler.extent(100, 5000, alignment) <= 5000)

    def test_every_octave_is_as_likely_as_any_other(self):
        sampler = Sampler(4, "octaves")
        counts = [0] * 10
        for _ in range(5000):
            counts[int(sampler.log_uniform(1, 1024)).bit_length() - 1] += 1
        for count in counts:
            self.assertTrue(400 < count < 600, counts)

    def test_extents_are_aligned_and_misaligned(self):
        sampler = Sampler(5, "alignment")
        extents = [sampler.extent(1000, 100000) for _ in range(400)]
        self.assertGreater(sum(e % 64 == 0 for e in extents), 150)
        self.assertGreater(sum(e % 8 != 0 for e in extents), 25)


class PlanTest(unittest.TestCase):
    def test_a_plan_is_the_same_every_time_and_its_cases_are_named_once(self):
        for scope in (Scope(), Scope(quick=True), Scope(quick=True, cpu=True)):
            names = [case.name for case in kernels.plan(scope)]
            self.assertEqual(names, [case.name for case in kernels.plan(scope)])
            self.assertEqual(len(names), len(set(names)))

    def test_cases_stay_below_the_limits_of_their_scope(self):
        cpu = Scope(quick=True, cpu=True)
        for case in kernels.plan(cpu):
            self.assertLess(case.needed_bytes, 5 * cpu.max_bytes, case.name)
        self.assertLess(max(case.needed_bytes for case in kernels.plan(Scope())), 22e9)

    def test_every_kind_of_kernel_is_in_every_plan(self):
        wanted = {"gemm", "bmm", "attention", "layer_norm", "rms_norm", "softmax", "gelu", "gated_silu", "dropout",
                  "rotary_unfused", "cross_entropy", "add", "multiply", "transpose", "concatenate", "copy", "memcpy_h2d",
                  "memcpy_d2h", "embedding", "embedding_bag", "conv2d", "batch_norm", "adam", "sgd"}
        for scope in (Scope(), Scope(quick=True), Scope(quick=True, cpu=True)):
            self.assertEqual(wanted - {case.op for case in kernels.plan(scope)}, set())
        types = {case.dtype for case in kernels.plan(Scope()) if case.op == "gemm"}
        self.assertEqual(types, {"fp32", "tf32", "fp16", "bf16", "fp8"})

    def test_lookups_span_what_recommendation_models_have(self):
        shapes = [case.shape for case in kernels.plan(Scope()) if case.op == "embedding_bag"]
        for column, low, high in (("tables", 1, 20), ("rows", 5000, 3_000_000), ("pooling", 1, 50), ("dim", 32, 256)):
            self.assertLessEqual(min(s[column] for s in shapes), low, column)
            self.assertGreaterEqual(max(s[column] for s in shapes), high, column)


if __name__ == "__main__":
    unittest.main()
