"""Reading of delimited text (.csv, .tsv, .txt, also .gz), and what is wrong with a file that cannot be read."""

import codecs
import gzip
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from llcg_dist.config.files import DELIMITERS, FilesConfig
from llcg_dist.errors import UserError, one_line

_SHOWN_COLUMNS, _NAME_LENGTH = 8, 60
"""How many columns a message names, and how many characters of each."""
SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")


def is_csv(path: Path) -> bool:
    return path.name.endswith(SUFFIXES)


def read_header(path: Path, config: FilesConfig, example: Sequence[str]) -> list[str]:
    """The names of the columns; `example` has those that the file should have, for the message about an empty one."""
    try:
        # Read as a data row: in a header, pandas would rename the second of two columns with the same name.
        options = _options(path, config)
        return pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options).iloc[0].tolist()
    except pd.errors.EmptyDataError:
        names = ",".join(example)
        raise UserError(
            f"{path}: not a readable CSV file: it is empty; its first line must name the columns, such as {names}"
        ) from None
    except Exception as error:  # on a damaged file pandas raises almost anything
        raise UserError(_explain(path, config, error)) from None


def read_cells(path: Path, config: FilesConfig, text: Sequence[str]) -> pd.DataFrame:
    """All columns: with usecols, pandas would not notice a line with too many cells, and without index_col=False it
    would take the first cells of such lines for an index."""
    types, options = dict.fromkeys(text, str), _options(path, config)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Length of header", pd.errors.ParserWarning)
            return pd.read_csv(
                path, dtype=types, keep_default_na=False, na_values=[""], low_memory=False, index_col=False, **options
            )
    except pd.errors.ParserWarning:
        error = ValueError("line 2 has more cells than the header")
        raise UserError(_explain(path, config, error)) from None
    except Exception as error:
        raise UserError(_explain(path, config, error)) from None


def missing_column(path: Path, config: FilesConfig, role: str, columns: Sequence[str]) -> str:
    """The message for a column that a file does not have, with the setting that may be wrong."""
    wanted, has = getattr(config.columns, role), _listed(columns)
    message = f"{path}: no column {wanted!r}; it has {has}"
    other = next((word for word, character in DELIMITERS.items() if character in columns[0]), None) if columns else None
    if is_csv(path) and len(columns) == 1 and other:
        return f"{message}; if {other} separates its cells, give dataset.delimiter={other}"
    if is_csv(path) and columns and all(_is_number(name) for name in columns):
        return f"{message}; its first line must name the columns"
    return f"{message}; name the column with dataset.columns.{role}=NAME"


def _listed(columns: Sequence[str]) -> str:
    """The names of the columns, of many the first ones; a header that is read as one name may be long as well."""
    shown = [
        repr(name if len(name) <= _NAME_LENGTH else f"{name[:_NAME_LENGTH]}…") for name in columns[:_SHOWN_COLUMNS]
    ]
    more = f" and {len(columns) - len(shown):,} more" if len(columns) > len(shown) else ""
    return ", ".join(shown) + more if shown else "none"


def _options(path: Path, config: FilesConfig) -> dict[str, Any]:
    """The arguments of pandas.read_csv that the settings decide."""
    default = "\t" if ".tsv" in path.suffixes else ","
    separator = default if config.delimiter is None else DELIMITERS.get(config.delimiter, config.delimiter)
    encoding = codecs.lookup(config.encoding).name
    return {"sep": r"\s+" if separator == " " else separator, "encoding": f"{encoding}{'-sig' * (encoding == 'utf-8')}"}


def _explain(path: Path, config: FilesConfig, error: Exception) -> str:
    """One line about a file that pandas cannot read, with the remedy."""
    if isinstance(error, UnicodeError):
        line = _first_undecodable_line(path, config.encoding)
        place = f"{path}: line {line}" if line else f"{path}"
        return f"{place}: is not {config.encoding} text; name its encoding, such as {_guess(path, config.encoding)}"
    reason = one_line(error)
    advice = "; is dataset.delimiter right?" if isinstance(error, pd.errors.ParserError) else ""
    return f"{path}: not a readable CSV file ({reason}){advice}"


def _first_undecodable_line(path: Path, encoding: str) -> int | None:
    """The number of the first line that is not text in this encoding; None where lines cannot be told apart."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding)
            except UnicodeError:
                return None if number == 1 and encoding.lower().startswith(("utf-16", "utf-32")) else number
    return None


def _guess(path: Path, encoding: str) -> str:
    """The setting that most likely helps: Windows writes `Unicode text` as UTF-16 with a mark at its beginning."""
    with _open(path) as file:
        if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "dataset.encoding=utf-16"
    is_utf_8 = codecs.lookup(encoding).name == "utf-8"
    return "dataset.encoding=latin-1" if is_utf_8 else "dataset.encoding=utf-8"


def _open(path: Path) -> Any:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
