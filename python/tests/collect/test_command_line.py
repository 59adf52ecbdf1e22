import json
import signal
import subprocess
import tempfile
import time
import unittest
from collections import Counter
from pathlib import Path

from collect.support import command, environment, read_rows


def call(*arguments):
    return subprocess.run(command(*arguments), env=environment(), capture_output=True, text=True, timeout=1800)


class CommandLineTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = Path(folder.name) / "run"

    def finished(self):
        """Cases that the state calls done; none while it is not there yet."""
        try:
            return dict(json.loads((self.out / "progress.json").read_text())["done"])
        except FileNotFoundError:
            return {}

    def test_a_run_that_was_killed_goes_on_and_repeats_nothing(self):
        process = subprocess.Popen(command("kernels", "--out", self.out, "--quick"), env=environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 900
        while len(self.finished()) < 40 and time.monotonic() < end and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        before = self.finished()
        state = json.loads((self.out / "progress.json").read_text())
        kept = (self.out / "kernels.csv").read_bytes()[:state["table_bytes"]["kernels.csv"]]
        self.assertGreaterEqual(len(before), 40)

        again = call("kernels", "--out", self.out, "--quick", "--resume")
        self.assertEqual(again.returncode, 0, again.stderr)
        after = self.finished()
        self.assertGreater(len(after), len(before))
        self.assertEqual({case: after[case] for case in before}, before)
        # What was measured before the kill stands as it was, and no row is there twice.
        self.assertTrue((self.out / "kernels.csv").read_bytes().startswith(kept))
        rows = read_rows(self.out / "kernels.csv")
        repeated = [key for key, n in Counter((r["case"], r["direction"]) for r in rows).items() if n > 1]
        self.assertEqual(repeated, [])
        measured = {case.split("/", 1)[1] for case, reason in after.items() if case.startswith("kernels/") and not reason}
        self.assertEqual({row["case"] for row in rows}, measured)
        self.assertIn("left", again.stderr)

        platform = json.loads((self.out / "platform.json").read_text())
        self.assertEqual({row["gpu"] for row in rows}, {platform["device"]["name"]})
        self.assertGreater(platform["device"]["memory_bandwidth_GBps"], 0)
        self.assertGreater(platform["device"]["peak_fp32_TFLOPs"], 0)
        about = json.loads((self.out / "environment.json").read_text())
        self.assertEqual(about["settings"]["seed"], 1)
        self.assertIn("PyTorch", about["software"])

    def test_a_call_ends_at_its_time_limit_and_says_how_to_go_on(self):
        first = call("kernels", "--out", self.out, "--quick", "--time-limit", 2)
        self.assertEqual(first.returncode, 3, first.stderr)
        self.assertIn("--resume", first.stdout)
        done = len(self.finished())
        self.assertGreater(done, 0)
        self.assertEqual(call("kernels", "--out", self.out, "--quick", "--time-limit", 1, "--resume").returncode, 3)
        self.assertGreater(len(self.finished()), done)

    def test_bad_input_is_one_line(self):
        self.out.mkdir()
        (self.out / "progress.json").write_text("not JSON")
        for arguments, words in ((("--out", self.out), "--resume"), (("--out", self.out, "--resume"), "cannot be read"),
                                 (("--out", "/proc/none/run"), "/proc/none")):
            answer = call("kernels", "--quick", *arguments)
            self.assertEqual(answer.returncode, 2)
            self.assertEqual(len(answer.stderr.strip().splitlines()), 1, answer.stderr)
            self.assertIn(words, answer.stderr)


if __name__ == "__main__":
    unittest.main()
