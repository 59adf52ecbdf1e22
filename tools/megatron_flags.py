"""Which flags a new release of Megatron-LM has that the table of flags lacks, and which flags of the table it has no more.

    python tools/megatron_flags.py DUMP [docs/reference/megatron-flags.md]

DUMP is what the parser of the release has, in any of three forms: the output of `pretrain_gpt.py --help`; a CSV with a
column `flags`; the source that makes it (arguments.py). Exit code 1: the table lacks some.
"""

import csv
import fnmatch
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).parent.parent / "docs/reference/megatron-flags.md"
FLAG = r"-{2,3}[A-Za-z][A-Za-z0-9_-]*"


def flags_of_dump(text):
    header = text.split("\n", 1)[0].split(",")
    if "flags" in header:
        cells = [row["flags"] for row in csv.DictReader(text.splitlines())]
        return {flag for cell in cells for flag in re.findall(FLAG, cell)}
    if "add_argument" in text:
        calls = re.findall(r"add_argument\(((?:\s*['\"]-[^'\"]*['\"],?)+)", text)
        return {flag for call in calls for flag in re.findall(FLAG, call)}
    return set(re.findall(r"(?<![\w-])" + FLAG, text)) - {"--help"}


def flags_of_table(text):
    """Flags and, with a star, patterns."""
    return set(re.findall(r"`(" + FLAG + r"\*?)`", text))


def is_known(flag, table):
    # Fields of dataclasses are called otherwise than their flags.
    names = {flag, flag.replace("_", "-"), "-" + flag, flag.replace("--apply-", "--"), flag + "unication"}
    names |= {"--" + name[5:] if name.startswith("--no-") else "--no-" + name[2:] for name in set(names)}
    return any(name in table or any(fnmatch.fnmatch(name, row) for row in table if row.endswith("*")) for name in names)


def main(arguments):
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    dump = flags_of_dump(pathlib.Path(arguments[0]).read_text(encoding="utf-8"))
    if not dump:
        sys.exit(f"{arguments[0]}: found no flags, expected --help, a CSV with a column `flags`, or arguments.py")
    table = flags_of_table(pathlib.Path(arguments[1] if arguments[1:] else TABLE).read_text(encoding="utf-8"))
    missing = sorted(flag for flag in dump if not is_known(flag, table))
    gone = sorted(row for row in table if not row.endswith("*") and not is_known(row, dump))
    for flag in missing:
        print("not in the table:", flag)
    for flag in gone:
        print("no more in the parser:", flag)
    print(f"{len(dump)} flags, {len(missing)} not in the table; {len(gone)} of the table are others'")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
