"""Reading of the user's CSV, Parquet and .npy files, with errors that name the file, row and column."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from llcg_dist.config.files import ColumnsConfig, FilesConfig
from llcg_dist.data.datasets.csv_files import SUFFIXES, is_csv, missing_column, read_cells, read_header
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError, one_line


@dataclass(frozen=True)
class Table:
    """A file of delimited text or a Parquet file in memory, or some rows of a Parquet file.

    Empty cells are missing values; the words NA, nan and null are plain text.
    """

    path: Path
    frame: pd.DataFrame
    names: ColumnsConfig
    """What the columns are called."""
    unread_numbers: Sequence[str] = ()
    """Columns of numbers that were left out."""
    first_row: int = 0
    """Where in the file these rows begin."""

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)

    def location(self, row: int) -> str:
        """The file, and the line of a CSV as editors count (its header is line 1) or the row of a Parquet from 0."""
        row += self.first_row
        return f"{self.path}: line {row + 2}" if is_csv(self.path) else f"{self.path}: row {row}"

    def require_no_empty(self, column: str) -> None:
        """Raises UserError for the first empty cell of a column."""
        empty = np.flatnonzero(self.frame[column].isna())
        if len(empty):
            raise UserError(f"{self.location(empty[0])}: column {column!r} is empty")

    def numbers(self, column: str) -> Array:
        """The column as float32; raises UserError for the first cell that is not a finite float32."""
        cells = self.frame[column]
        values = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        with np.errstate(over="ignore"):
            values = values.astype(np.float32)
        nonfinite = np.flatnonzero(~np.isfinite(values))
        if len(nonfinite):
            row = nonfinite[0]
            shown = "empty" if cells.isna().iloc[row] else repr(_plain(cells.iloc[row]))
            point = ", with a point before its decimals" if re.fullmatch(r"'-?\d+,\d+'", shown) else ""
            raise UserError(f"{self.location(row)}: column {column!r} is {shown}; it must be a finite number{point}")
        return values


def is_npy(path: Path) -> bool:
    return path.suffix == ".npy"


def read_table(
    path: Path, config: FilesConfig, roles: Sequence[str], text: Sequence[str] = (), only_roles: bool = False
) -> Table:
    """Reads delimited text or .parquet, which must have the columns of these roles (keys of dataset.columns).

    Columns named in `text` are read as text, so that 007 keeps its zeros. `only_roles` leaves out all others.
    """
    (table,) = read_pieces(path, config, roles, text, only_roles)
    return table


def read_pieces(
    path: Path,
    config: FilesConfig,
    roles: Sequence[str],
    text: Sequence[str] = (),
    only_roles: bool = False,
    cells: int | None = None,
) -> Iterator[Table]:
    """The rows of a table in order, at least one piece: those of a Parquet file with about `cells` cells each.

    Delimited text is one piece: what a column holds, numbers or words, is known only after the last line.
    """
    require_file(path)
    if not is_csv(path) and path.suffix != ".parquet":
        raise UserError(f"{path}: unknown kind of file; must end in {', '.join(SUFFIXES)} or .parquet")
    required = [getattr(config.columns, role) for role in roles]
    try:
        columns = _columns(path, config, required)
        for role, column in zip(roles, required, strict=True):
            if column not in columns:
                raise UserError(missing_column(path, config, role, columns))
        wanted = required if only_roles else columns
        if is_csv(path):
            frame = read_cells(path, config, text)
            numbers = [name for name in columns if is_numeric_dtype(frame[name]) and frame[name].notna().any()]
            frames = iter([frame[wanted]])
        else:
            frames, numbers = _read_parquet(path, wanted, cells), _numeric_columns(path, columns)
        first_row = 0
        for frame in frames:
            unread = [name for name in numbers if name not in wanted]
            yield Table(path, frame, config.columns, unread, first_row)
            first_row += len(frame)
    except (UserError, MemoryError):
        raise
    except Exception as error:  # on a damaged file the parsers raise almost anything
        kind = "CSV" if is_csv(path) else "Parquet"
        raise UserError(f"{path}: not a readable {kind} file ({one_line(error)})") from None


def num_rows(path: Path) -> int:
    """Of a Parquet file, by its footer; 0 for others, which are read at once."""
    if path.suffix != ".parquet":
        return 0
    import pyarrow.parquet

    try:
        return int(pyarrow.parquet.read_metadata(path).num_rows)
    except Exception as error:
        raise UserError(f"{path}: not a readable Parquet file ({one_line(error)})") from None


def _columns(path: Path, config: FilesConfig, example: Sequence[str]) -> list[str]:
    """The names of a file's columns, which must be unique and not empty, without those to ignore."""
    if is_csv(path):
        columns = read_header(path, config, example)
    else:
        import pyarrow.parquet

        # pandas also writes its unnamed index, which is no column of the user's.
        columns = [name for name in pyarrow.parquet.read_schema(path).names if not name.startswith("__index_level_")]
    if "" in columns:
        raise UserError(f"{path}: column {columns.index('') + 1} has no name (written with pandas? use index=False)")
    duplicates = [column for i, column in enumerate(columns) if column in columns[:i]]
    if duplicates:
        raise UserError(f"{path}: two columns are named {duplicates[0]!r}")
    return [column for column in columns if column not in config.columns.ignore]


def _read_parquet(path: Path, columns: list[str], cells: int | None) -> Iterator[pd.DataFrame]:
    """The rows in pieces of about so many cells, or all at once."""
    import pyarrow
    import pyarrow.parquet

    if cells is None or num_rows(path) == 0:
        yield _frame(pyarrow.parquet.read_table(path, columns=columns))
        return
    rows = max(1, cells // len(columns))
    with pyarrow.parquet.ParquetFile(path, buffer_size=1 << 20) as file:
        for group in range(file.num_row_groups):  # Arrow holds what it has read of a group until its iterator ends
            for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                yield _frame(pyarrow.Table.from_batches([batch]).select(columns))


def _frame(table: Any) -> pd.DataFrame:
    table.validate(full=True)  # a damaged page can hold invalid UTF-8, which otherwise fails only when it is read
    frame = table.to_pandas(ignore_metadata=True)
    categorical = [column for column in frame.columns if isinstance(frame[column].dtype, pd.CategoricalDtype)]
    return frame.astype(dict.fromkeys(categorical, object))


def _numeric_columns(path: Path, columns: Sequence[str]) -> list[str]:
    """Those of the columns of a Parquet file that hold numbers, told by its schema alone."""
    import pyarrow.parquet
    import pyarrow.types as kinds

    schema = pyarrow.parquet.read_schema(path)
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_decimal)
    return [name for name in columns if any(test(schema.field(name).type) for test in tests)]


def read_npy(path: Path, kinds: str = "fiub") -> Array:
    """Maps an .npy file of numbers into memory; `kinds` are NumPy's letters for what it may hold."""
    require_file(path)
    try:
        array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy's header parser raises almost anything on a damaged file
        reason = one_line(error)
        if "pickle" in reason or "Python objects" in reason:
            reason = "it holds pickled Python objects, which are never loaded; save an array of numbers"
        elif isinstance(error, EOFError) or "mmap length" in reason or "No data left" in reason:
            reason = "it is truncated"
        raise UserError(f"{path}: not a readable .npy file: {reason}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
        content = getattr(array, "dtype", "an .npz archive")
        raise UserError(f"{path}: must hold an array of numbers, not {content}")
    return array


def as_integers(cells: pd.Series) -> Array | None:
    """The cells as int64 if every one of them is an integer, else None."""
    values = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if not (np.isfinite(values).all() and (values == np.floor(values)).all() and (np.abs(values) < 2**53).all()):
        return None
    return values.astype(np.int64)


def require_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"{path}: no such file")


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python number that it holds."""
    return value.item() if isinstance(value, np.generic) else value
