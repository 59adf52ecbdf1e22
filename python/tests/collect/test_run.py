import io
import json
import tempfile
import unittest
from contextlib import redirect_stderr
from pathlib import Path

from stepcast.collect.progress import MOST_ATTEMPTS, Meter, State, StateError
from stepcast.collect.run import DeviceIsLost, Item, TimeIsUp
from stepcast.collect.skip import Skip
from stepcast.collect.table import Table
from collect.support import make_run, read_rows

COLUMNS = ["gpu", "value", "software", "case"]


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name)
        quiet = redirect_stderr(io.StringIO())
        quiet.__enter__()
        self.addCleanup(quiet.__exit__, None, None, None)
        self.measured = []

    def item(self, name, planned_s=1.0, error=None):
        def measure():
            self.measured.append(name)
            if error is not None:
                raise error
            return [{"value": len(self.measured)}]
        return Item(name, planned_s, measure)

    def test_a_resumed_run_measures_what_is_left_and_nothing_twice(self):
        times = iter(range(0, 1000, 1))
        run = make_run(self.out, 8, clock=lambda: next(times))
        items = [self.item(f"case{i}") for i in range(6)]
        calls = 0
        while True:
            calls += 1
            self.assertLess(calls, 10)
            try:
                run.section("s", "s.csv", COLUMNS, items)
                break
            except TimeIsUp:
                times = iter(range(0, 1000, 1))
                run = make_run(self.out, 8, clock=lambda: next(times), resume=True)
        self.assertGreater(calls, 1)
        self.assertEqual(self.measured, [f"case{i}" for i in range(6)])
        self.assertEqual([row["case"] for row in read_rows(self.out / "s.csv")], self.measured)

    def test_every_call_measures_something_however_short_it_is(self):
        items = [self.item("long", planned_s=1000), self.item("longer", planned_s=1000)]
        with self.assertRaises(TimeIsUp):
            make_run(self.out, 1).section("s", "s.csv", COLUMNS, items)
        make_run(self.out, 1, resume=True).section("s", "s.csv", COLUMNS, items)
        self.assertEqual(self.measured, ["long", "longer"])

    def test_what_raises_is_skipped_by_name_with_its_reason(self):
        run = make_run(self.out)
        run.section("s", "s.csv", COLUMNS, [
            self.item("a/fp8/x", error=Skip("no units")), self.item("b/fp32/x", error=RuntimeError("odd\nmore")),
            self.item("c/fp32/x", error=RuntimeError("CUDA out of memory. Tried")), self.item("d/fp32/x")])
        self.assertEqual(run.skipped(), {"s/a/fp8: no units": 1, "s/b/fp32: RuntimeError: odd": 1,
                                         "s/c/fp32: out of memory": 1})
        self.assertEqual([row["case"] for row in read_rows(self.out / "s.csv")], ["d/fp32/x"])

    def test_a_lost_device_ends_the_call_and_the_next_goes_on_behind_it(self):
        items = [self.item("bad", error=RuntimeError("CUDA error: an illegal memory access was encountered")),
                 self.item("good")]
        with self.assertRaises(DeviceIsLost):
            make_run(self.out).section("s", "s.csv", COLUMNS, items)
        make_run(self.out, resume=True).section("s", "s.csv", COLUMNS, items)
        self.assertEqual(self.measured, ["bad", "good"])

    def test_a_case_that_ends_the_process_is_given_up(self):
        state = State.open(self.out, {"seed": 1}, False)
        for _ in range(MOST_ATTEMPTS):
            self.assertTrue(state.begin("s/killer"))  # and the process ends
            state = State.open(self.out, {"seed": 1}, True)
        run = make_run(self.out, resume=True)
        run.section("s", "s.csv", COLUMNS, [self.item("killer"), self.item("good")])
        self.assertEqual(self.measured, ["good"])
        self.assertIn("ended in it", next(iter(run.skipped())))

    def test_rows_of_a_case_that_was_cut_off_are_cut_away(self):
        make_run(self.out).section("s", "s.csv", COLUMNS, [self.item("a")])
        with open(self.out / "s.csv", "a", encoding="utf-8") as file:
            file.write("CPU,7,half a r")
        make_run(self.out, resume=True).section("s", "s.csv", COLUMNS, [self.item("a"), self.item("b")])
        self.assertEqual([row["case"] for row in read_rows(self.out / "s.csv")], ["a", "b"])

    def test_folders_of_other_runs_are_refused_with_a_reason(self):
        make_run(self.out).section("s", "s.csv", COLUMNS, [self.item("a")])
        with self.assertRaisesRegex(StateError, "--resume"):
            make_run(self.out)
        with self.assertRaisesRegex(StateError, "seed 1, this call has 2"):
            State.open(self.out, {"seed": 2}, True)
        (self.out / "s.csv").write_text("short")
        with self.assertRaisesRegex(StateError, "empty folder"):
            make_run(self.out, resume=True).section("s", "s.csv", COLUMNS, [self.item("a"), self.item("b")])
        for text in ("{", "[]", "{}", json.dumps({"format": 99})):
            (self.out / "progress.json").write_text(text)
            with self.assertRaisesRegex(StateError, "empty folder"):
                State.open(self.out, {"seed": 1}, True)


class MeterTest(unittest.TestCase):
    def test_the_rest_is_estimated_at_the_pace_so_far(self):
        meter = Meter("s", 10, expected_s=100)
        self.assertEqual(meter.remaining_s(), 100)
        meter.add(planned_s=10, spent_s=30)
        meter.add(planned_s=10, spent_s=30)
        self.assertAlmostEqual(meter.remaining_s(), 240)

    def test_lines_come_now_and_then(self):
        out, times = io.StringIO(), iter([0, 1, 2, 6])
        meter = Meter("s", 4, 4, out=out, clock=lambda: next(times))
        times = iter([10, 10, 11, 12, 16, 16])
        for i in range(4):
            meter.show(f"case{i}")
        self.assertEqual(len(out.getvalue().splitlines()), 2)


class TableTest(unittest.TestCase):
    def test_unknown_columns_are_an_error_and_missing_ones_are_empty(self):
        with tempfile.TemporaryDirectory() as folder:
            table = Table(Path(folder) / "t.csv", ["a", "b"])
            table.add([{"a": 1.23456789}])
            with self.assertRaises(ValueError):
                table.add([{"c": 1}])
            table.close()
            self.assertEqual((Path(folder) / "t.csv").read_text(), "a,b\n1.23457,\n")


if __name__ == "__main__":
    unittest.main()
