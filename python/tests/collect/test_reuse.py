import unittest

import torch

from stepcast.collect import reuse


def seeded(seed=1):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


class ReuseTest(unittest.TestCase):
    def test_histograms_reach_the_distinct_fraction_that_they_ask_for(self):
        for name in reuse.HISTOGRAMS:
            indices = reuse.draw_indices(reuse.histogram(name), 400_000, 10_000_000, seeded())
            wanted = reuse.expected_distinct_fraction(reuse.HISTOGRAMS[name])
            self.assertAlmostEqual(reuse.distinct_fraction(indices) / wanted, 1, delta=0.08, msg=name)

    def test_histograms_reach_the_shares_of_lookups_that_they_ask_for(self):
        shares = reuse.HISTOGRAMS["mixed"]
        indices = reuse.draw_indices(reuse.histogram("mixed"), 1_000_000, 10_000_000, seeded())
        counts = torch.unique(indices, return_counts=True)[1].double()
        # The hottest bins hold fewer lookups than one of their rows needs: those went to the cooler ones.
        for low, high, share in list(zip((0,) + reuse.REUSE_BOUNDS, reuse.REUSE_BOUNDS, shares))[:12]:
            found = counts[(counts > low) & (counts <= high)].sum().item() / indices.numel()
            self.assertAlmostEqual(found, share / sum(shares), delta=0.01)

    def test_uniform_draws_have_as_many_distinct_rows_as_theory_says(self):
        rows, lookups = 10_000, 20_000
        indices = reuse.draw_indices(reuse.UNIFORM, lookups, rows, seeded())
        wanted = rows * (1 - (1 - 1 / rows) ** lookups) / lookups
        self.assertAlmostEqual(reuse.distinct_fraction(indices), wanted, delta=0.01)

    def test_a_steeper_zipf_law_repeats_more_rows(self):
        fractions = [reuse.distinct_fraction(reuse.draw_indices(reuse.zipf(e), 100_000, 1_000_000, seeded()))
                     for e in (0.6, 0.9, 1.05, 1.3)]
        self.assertEqual(fractions, sorted(fractions, reverse=True))
        self.assertGreater(fractions[0], 4 * fractions[-1])

    def test_every_index_is_a_row_of_the_table(self):
        patterns = [reuse.UNIFORM] + [reuse.zipf(e) for e in (0.6, 1.0, 1.3)]
        for pattern in patterns + [reuse.histogram(name) for name in reuse.HISTOGRAMS]:
            for rows in (1, 7, 1000):
                indices = reuse.draw_indices(pattern, 5000, rows, seeded())
                self.assertEqual(indices.numel(), 5000, str(pattern))
                self.assertTrue(0 <= int(indices.min()) and int(indices.max()) < rows, str(pattern))

    def test_hot_rows_do_not_lie_together(self):
        indices = reuse.draw_indices(reuse.zipf(1.3), 100_000, 1_000_000, seeded())
        rows, counts = torch.unique(indices, return_counts=True)
        hottest = rows[counts.argsort(descending=True)[:8]].sort()[0]
        self.assertGreater(int((hottest[1:] - hottest[:-1]).min()), 100)


if __name__ == "__main__":
    unittest.main()
