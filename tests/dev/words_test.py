#!/usr/bin/env python3
"""Tests of tools/words.py."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import words  # noqa: E402


class Words(unittest.TestCase):
    def split(self, suffix, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"x{suffix}"
            path.write_text(text)
            return words.split_source(path)

    def test_literals_and_comments_of_cpp(self):
        comments, literals = self.split(
            ".cpp", 'f("a "  // c "d"\n  , \'"\', R"(b"c)" "d\\"");  /* "e" */ g(1\'000, "h" "i")')
        self.assertEqual([text for _, text in comments], ['c "d"', '"e"'])
        self.assertEqual([text for _, text in literals], ["a ", 'b"cd\\"', "hi"])

    def test_literals_of_python(self):
        comments, literals = self.split(".py", "x = 'a\"b'  # \"c\"\ny = \"d\" 'e'\n")
        self.assertEqual([text for _, text in comments], ['"c"'])
        self.assertEqual([text for _, text in literals], ['a"b', "de"])

    def test_dialect(self):
        self.assertIn("beside", words.dialect_in("what is said beside it"))
        self.assertIn("is no file", words.dialect_in("this is no file"))
        for plain in ("there is no file", "besides", "`beside` is a word", "a standard product of two", "is no longer here"):
            self.assertIsNone(words.dialect_in(plain), plain)

    def test_sentences(self):
        text = "Use `a. b` here. The rest takes 1.5 ms. (Or more.)"
        self.assertEqual(words.sentences_of(text), ["Use CODE here.", "The rest takes 1.5 ms.", "(Or more.)"])
        self.assertTrue(words.BARE_SUBJECT.search("What is kept is freed later."))
        self.assertFalse(words.BARE_SUBJECT.search("What is kept?"))

    def test_pages(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.md"
            path.write_text("# Title\n\nOne [link](a.md)\ntwo.\n\n```sh\ncode\n```\n- item\n\n| cell | more |\n|---|---|\n")
            self.assertEqual([text for _, text in words.prose_of_page(path)],
                             ["Title", "One link two.", "item", "cell", "more"])


if __name__ == "__main__":
    unittest.main()
