"""CSV files that grow row by row and survive a crash.

The state of the run has the length of the file after the last finished case. Everything after it belongs to an interrupted
case, and is removed before the next row is written.
"""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any, Mapping, Sequence


class Table:
    """A CSV file with fixed columns. Values that a row does not have are left empty."""

    def __init__(self, path: Path, columns: Sequence[str], size_bytes: int = 0) -> None:
        """Opens the file and keeps its first `size_bytes`. 0 starts a new file with the header.

        Raises ValueError if the file is shorter than that, because it was changed from outside.
        """
        self.path = path
        self.columns = list(columns)
        if size_bytes == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "wb")
            self._write(",".join(self.columns) + "\n")
            return
        found_bytes = path.stat().st_size if path.is_file() else 0
        if found_bytes < size_bytes:
            raise ValueError(f"{path} has {found_bytes} bytes, the run had written {size_bytes}: "
                             "put the file back or choose an empty folder")
        self._file = open(path, "r+b")
        self._file.truncate(size_bytes)
        self._file.seek(size_bytes)

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends `rows` in one write."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        for row in rows:
            writer.writerow({name: _cell(value) for name, value in row.items()})
        if rows:
            self._write(text.getvalue())

    @property
    def size_bytes(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def _write(self, text: str) -> None:
        self._file.write(text.encode("utf-8"))
        self._file.flush()
        os.fsync(self._file.fileno())


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else value
