import pytest

import stepcast
from stepcast import Table, _stepcast


def table_of(text):
    return Table(_stepcast.Table.from_csv(text))


def test_types_of_columns():
    table = table_of('n,x,yes,what,n2\n1,0.5,true,"a,""b""",\n-2,3,false,c,4\n')
    assert table.columns == ("n", "x", "yes", "what", "n2") and len(table) == 2
    assert table.to_dict() == {"n": [1, -2], "x": [0.5, 3.0], "yes": [True, False], "what": ['a,"b"', "c"], "n2": [None, 4]}
    assert table.to_csv() == 'n,x,yes,what,n2\n1,0.5,true,"a,""b""",\n-2,3,false,c,4\n'
    assert [type(value) for value in table["n"] + table["x"]] == [int, int, float, float]


def test_lists_of_documents():
    plan = stepcast.plan("llama-3-8b", platform="dgx-h100", gpus=8, gbs=32)
    layouts = plan.table("layouts")
    assert len(layouts) == len(plan.layouts)
    assert layouts["step_time_ms"][0] == plan.layouts[0].step_time_ms
    with pytest.raises(KeyError, match="there are: priced"):
        plan.table("nothing")


def test_empty_and_ragged():
    assert len(table_of("a,b\n")) == 0
    assert table_of("a,b\n1\n2,3,4\n").to_dict() == {"a": [1, 2], "b": [None, 3]}
    assert table_of("").columns == ("",)


def test_csv_into_a_file(tmp_path):
    table = table_of("a\n1\n")
    table.to_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a\n1\n"


def test_pandas():
    pytest.importorskip("pandas")
    frame = table_of("n,x,what\n1,0.5,a\n2,,b\n").to_pandas()
    assert list(frame.columns) == ["n", "x", "what"] and frame["n"].sum() == 3 and frame["x"].isna().sum() == 1


def test_polars():
    polars = pytest.importorskip("polars")
    frame = table_of("n,x,yes,what\n1,0.5,true,a\n2,,false,\n").to_polars()
    assert frame.schema == {"n": polars.Int64, "x": polars.Float64, "yes": polars.Boolean, "what": polars.String}
    assert frame.rows() == [(1, 0.5, True, "a"), (2, None, False, None)]
    many = table_of("n,what\n" + "".join(f"{i},w{i}\n" for i in range(10000)))
    assert many.to_polars()["n"].sum() == 49995000


def test_capsules_that_nobody_takes_are_released():
    table = table_of("a,b\n1,x\n")
    for _ in range(1000):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()
