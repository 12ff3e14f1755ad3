# SPDX-License-Identifier: Apache-2.0
"""The figures as a page of HTML: bars and numbers, one file, no network."""

from __future__ import annotations

from html import escape
from math import log

from pystrobe.bench._text import HEAD, LEGEND, WORK, cells_of, groups, tool_of
from pystrobe.bench._turns import Row

#: Slow-downs are drawn on a logarithmic scale from 1 to this.
_MOST = 100.0
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What profilers cost</title>
<style>
:root {{ color-scheme: light dark; --ours: #c2410c; --others: #64748b; --line: #8884; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ours: #fb923c; --others: #94a3b8; }} }}
body {{ font: 15px/1.4 system-ui, sans-serif; }}
body {{ margin: 1.5rem auto; max-width: 68rem; padding: 0 1rem; }}
h1 {{ font-size: 1.3rem; }} h2 {{ font-size: 1.05rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ padding: .2rem .5rem; border-bottom: 1px solid var(--line); white-space: nowrap; }}
th {{ text-align: left; }} .number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.bar {{ width: 40%; }} .bar div {{ height: .8rem; background: var(--others); border-radius: 2px; }}
.ours .bar div {{ background: var(--ours); }}
.failed {{ white-space: normal; }}
pre {{ font: inherit; white-space: pre-line; }}
</style>
</head>
<body>
<h1>What profilers cost a program of calls</h1>
<p>{machine}</p>
{tables}
<pre>{legend}
Bars are on a logarithmic scale from 1 to {most:g}.</pre>
</body>
</html>
"""


def _bar(slow_down: float) -> str:
    share = min(1.0, max(0.0, log(max(slow_down, 1.0)) / log(_MOST)))
    return f'<td class="bar"><div style="width: {100 * share:.1f}%"></div></td>'


def _row(row: Row) -> str:
    is_ours = ' class="ours"' if row["tool"].startswith("pystrobe") else ""
    name = f"<td>{escape(tool_of(row))}</td>"
    if "failed" in row:
        why = f'<td class="failed" colspan="{len(HEAD) + 1}">failed: {escape(row["failed"])}</td>'
        return f"<tr{is_ours}>{name}{why}</tr>"
    cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells_of(row))
    return f"<tr{is_ours}>{name}{_bar(row['slow']['median'])}{cells}</tr>"


def _table(python: str, workload: str, rows: list[Row]) -> str:
    head = "".join(f'<th class="number">{escape(name)}</th>' for name in HEAD)
    body = "\n".join(map(_row, rows))
    return (
        f"<h2>Python {escape(python)}, {workload}: {escape(WORK[workload])}</h2>\n"
        f"<table>\n<tr><th>profiler</th><th></th>{head}</tr>\n{body}\n</table>"
    )


def page(rows: list[Row], machine: str) -> str:
    tables = [_table(python, workload, some) for (python, workload), some in groups(rows)]
    return _PAGE.format(
        machine=escape(machine), tables="\n".join(tables), legend=escape(LEGEND), most=_MOST
    )
