"""The comparison of a parser's flags with the table of flags."""

import pathlib
import subprocess
import sys

import pytest

TOOL = pathlib.Path(__file__).parents[2] / "tools/megatron_flags.py"
DUMPS = {
    "help": "usage: pretrain_gpt.py [-h] [--num-layers N] [--no-rope-fusion]\n  --num-layers N  how many\n  --warp-drive\n",
    "csv": "flags,group\n--num-layers,a\n--warp-drive,b\n--fp8-format --fp8,c\n",
    "source": "group.add_argument('--num-layers', type=int)\ngroup.add_argument('--warp-drive',\n  action='store_true')\n",
}


@pytest.mark.parametrize("form", DUMPS)
def test_names_flags_that_the_table_lacks(tmp_path, form):
    dump = tmp_path / "dump"
    dump.write_text(DUMPS[form])
    run = subprocess.run([sys.executable, TOOL, dump], capture_output=True, text=True)
    assert run.returncode == 1
    assert [line for line in run.stdout.splitlines() if line.startswith("not in")] == ["not in the table: --warp-drive"]


def test_is_content_with_flags_that_are_known(tmp_path):
    dump = tmp_path / "dump"
    dump.write_text("flags\n--num-layers\n--rope-fusion\n--dist-ckpt-format\n")
    run = subprocess.run([sys.executable, TOOL, dump], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    dump.write_text("nothing\n")
    assert "expected --help" in subprocess.run([sys.executable, TOOL, dump], capture_output=True, text=True).stderr
