"""Tables as HTML: sortable by the page's script, the best row marked, rows hidden with their method."""

import html
from collections.abc import Collection, Sequence

from llcg_dist.report.tables import Row


def to_html(
    rows: Sequence[Row], label: str, best: tuple[str, int] | None = None, leave_out: Collection[str] = ()
) -> str:
    """The table as HTML, without the columns in `leave_out`; the cell `best` (column, row) is bold."""
    names = [name for name in rows[0] if name not in leave_out]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    lines = []
    for index, row in enumerate(rows):
        cells = []
        for name in names:
            cell = row[name]
            bold = ' class="best"' if best == (name, index) else ""
            value = "" if cell.value is None else f' data-value="{html.escape(str(cell.value))}"'
            cells.append(f"<td{bold}{value}>{html.escape(cell.text)}</td>")
        method = f' data-method="{html.escape(row["method"].text)}"' if "method" in row else ""
        lines.append(f"<tr{method}>{''.join(cells)}</tr>")
    caption, body = f"<caption>{html.escape(label)}</caption>", "".join(lines)
    return f"<div class='scroll'><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
