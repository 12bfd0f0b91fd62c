"""A table as Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import html as markup
import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairshield_experiments.results.parts import ReportTable

_NUMERIC = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?( ± (\d[\d.]*|–))?( \([≤≥] [\d.]+\))?×?|–")
_ESTIMATE = re.compile(r"(-?\d[\d.]*) ± (\d[\d.]*)")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "κ": r"$\kappa$",
    "⌈": r"$\lceil$",
    "⌉": r"$\rceil$",
    "\n": " ",
}


def latex_text(text: str) -> str:
    r"""Text with nothing in it that LaTeX would take for a command.

    >>> print(latex_text("1.23 ± 0.11"), latex_text("50 % & κ"), latex_text("-0.20"))
    $1.23 \pm 0.11$ 50 \% \& $\kappa$ $-0.20$
    """
    if re.fullmatch(r"-\d[\d.]*", text):
        return f"${text}$"
    parts = _ESTIMATE.split(text)
    out = _escaped(parts[0])
    for value, error, rest in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        out += rf"${value} \pm {error}$" + _escaped(rest)
    return out


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _numeric_columns(table: ReportTable) -> list[bool]:
    """Per column, whether it is right-aligned: all its cells are numbers."""
    return [
        column >= table.n_keys and all(_NUMERIC.fullmatch(row[column]) for row in table.rows)
        for column in range(len(table.columns))
    ]


def markdown(table: ReportTable) -> str:
    """A GitHub table under its title, above its note."""

    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"

    rule = "|" + "|".join("---:" if right else "---" for right in _numeric_columns(table)) + "|"
    lines = [f"**{table.title}**", "", line(table.columns), rule, *map(line, table.rows)]
    if table.note:
        lines += ["", table.note]
    return "\n".join(lines) + "\n"


def latex(table: ReportTable) -> str:
    """A floating table with the rules of ``booktabs``."""
    align = "".join("r" if right else "l" for right in _numeric_columns(table))
    caption = latex_text(f"{table.title}. {table.note}" if table.note else table.title)
    return "\n".join(
        (
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            " & ".join(map(latex_text, table.columns)) + r" \\",
            r"\midrule",
            *(" & ".join(map(latex_text, row)) + r" \\" for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{table.name}}}",
            r"\end{table}",
            "",
        )
    )


def as_csv(table: ReportTable) -> str:
    """A header and the cells, as text."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    return out.getvalue()


def as_html(table: ReportTable) -> str:
    """A ``<table>``; key columns are header cells of their row, numbers have class ``number``."""
    numeric = _numeric_columns(table)
    head = "".join(f'<th scope="col">{markup.escape(name)}</th>' for name in table.columns)

    def cell(column: int, text: str) -> str:
        if column < table.n_keys:
            return f'<th scope="row">{markup.escape(text)}</th>'
        kind = ' class="number"' if numeric[column] else ""
        return f"<td{kind}>{markup.escape(text)}</td>"

    body = "\n".join(
        "<tr>" + "".join(cell(i, text) for i, text in enumerate(row)) + "</tr>"
        for row in table.rows
    )
    note = f'\n<p class="note">{markup.escape(table.note)}</p>' if table.note else ""
    return (
        f'<table id="{markup.escape(table.name)}">\n'
        f"<caption>{markup.escape(table.title)}</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>{note}\n"
    )
