"""evengraph export: write a saved model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from evengraph.cli.console import out, print_written
from evengraph.cli.opening import check_names


def export(
    model: Annotated[Path, typer.Argument(help="Folder that evengraph run --save wrote.")],
    to: Annotated[Path, typer.Option("--out", help="A .onnx file.")] = Path("model.onnx"),
) -> None:
    """Write a saved model as ONNX: features and neighbour aggregates in, probabilities out."""
    check_names(model=model)
    from evengraph.cli.opening import check_folder
    from evengraph.pipeline.table_model import TableModel
    from evengraph.report.terminal import plain_table

    if to.suffix.lower() != ".onnx":
        raise ValueError(f"--out takes a name that ends in .onnx, got {to}.")
    table_model = TableModel.load(model)
    check_folder(to.parent)
    inputs = table_model.export_onnx(to)
    table = plain_table(["input", "columns", "holds"])
    for name, item in inputs.items():
        table.add_row(escape(name), f"{item.width:,}", escape(item.about))
    out.print(table)
    classes = ", ".join(table_model.classes_)
    out.print(f"output: probabilities of {escape(classes)}", soft_wrap=True)
    out.print("TableModel.onnx_inputs computes the inputs.")
    print_written(to)
