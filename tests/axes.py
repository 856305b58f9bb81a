"""What a reader has to be told about the axes of a chart."""

from __future__ import annotations

import plotly.graph_objects as go


def silent_logs(figure: go.Figure) -> list[str]:
    """The logarithmic axes whose title does not say so."""
    said = ("log", "对数")
    return [
        name
        for name, axis in figure.layout.to_plotly_json().items()
        if name.startswith(("xaxis", "yaxis"))
        and axis.get("type") == "log"
        and not any(word in axis.get("title", {}).get("text", "") for word in said)
    ]
