#!/usr/bin/env python3
"""Tests of the marks of docs/output.py for what is not supported."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs"))
import output  # noqa: E402


class Marks(unittest.TestCase):
    """Pages of a folder with one test file, and a `stepcast` that ends with the exit code in its argument."""

    def problems(self, text):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
            root = pathlib.Path(folder)
            (root / "tests").mkdir()
            (root / "tests" / "a_test.cpp").write_text("TEST(Flags, Unknown) {}\n")
            program, page = root / "program", root / "page.md"
            program.write_text("#!/bin/sh\nexit $1\n")
            program.chmod(0o755)
            page.write_text(text)
            before, output.ROOT = output.ROOT, root
            try:
                checked = output.Page(page, program, out)
                self.assertEqual(checked.rewritten(), text)
                return checked.problems
            finally:
                output.ROOT = before

    def assert_one(self, text, part):
        problems = self.problems(text)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(part, problems[0])

    def test_exit_code(self):
        self.assertEqual(self.problems("It is refused.\n<!--! stepcast 2-->\n<!--! stepcast 2 # again-->\n"), [])
        self.assertEqual(self.problems("It is refused. <!--! stepcast 2-->\n"), [])
        self.assert_one("It is refused.\n<!--! stepcast 0-->\n", "exit code 0 instead of 2: stepcast 0")
        self.assert_one("It is refused.\n<!--! stepcast 1-->\n", "exit code 1 instead of 2")

    def test_file_of_the_page(self):
        page = "<!--@ code-->\n```text\n{}\n```\n\nIt is refused.\n<!--! stepcast $(cat $OUT/code)-->\n"
        self.assertEqual(self.problems(page.format(2)), [])
        self.assert_one(page.format(0), "exit code 0")

    def test_named_test(self):
        self.assertEqual(self.problems("It is rejected.\n<!--! test: tests/a_test.cpp:Unknown-->\n"), [])
        self.assert_one("It is rejected.\n<!--! test: tests/a_test.cpp:Known-->\n", "no test Known in tests/a_test.cpp")
        self.assert_one("It is rejected.\n<!--! test: tests/b_test.cpp:Unknown-->\n", "no test Unknown in tests/b_test.cpp")

    def test_missing_marks(self):
        self.assert_one("Plain.\n\nThis is not\nsupported.\n\n<!--! stepcast 2-->\n", "page.md:3: 1 statements")
        self.assert_one("- a is rejected\n- b is fine\n  <!--! stepcast 2-->\n", "page.md:1: 1 statements")
        self.assert_one("1. Rejected: a.\n", "page.md:1: 1 statements")
        self.assertEqual(self.problems("- a is rejected,\n  as is b\n  <!--! stepcast 2-->\n- c\n"), [])

    def test_tables(self):
        table = "| a | b |\n|---|---|\n| x | refused |\n| y | yes |\n| z | not supported |\n"
        self.assertEqual(self.problems(table + "<!--! stepcast 2-->\n<!--! stepcast 2-->\n"), [])
        self.assert_one(table + "<!--! stepcast 2-->\n", "page.md:1: 2 statements of something not supported, 1 marks")
        self.assert_one(table + 3 * "<!--! stepcast 2-->\n", "3 marks")

    def test_other_text(self):
        for text in ("## Not supported\n", "```text\nrejected\n```\n", "`refused_n` counts rows.\n", "Refusal is a word.\n"):
            self.assertEqual(self.problems(text), [], text)


if __name__ == "__main__":
    unittest.main()
