"""Figures of the report as Vega-Lite: the report's own script makes them, here as in the browser."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from . import _native

# The script words numbers with Vega, which a specification has no use for.
_AROUND = """
const vega = { defaultLocale: () => ({ format: () => String }) };
%s
function specified(text, index, options) {
  const { systems, figures } = JSON.parse(text);
  const figure = figures[index];
  const shown = new Set(figure.series.keys());
  const places = anabranchChart.places(systems, figures);
  return JSON.stringify(anabranchChart.alone(figure, { ...options, places, shown }));
}
"""


@cache
def _engine() -> Any:
    try:
        from py_mini_racer import MiniRacer
    except ImportError as missing:
        raise ImportError("chart() needs mini-racer; remedy: pip install 'anabranch[charts]'") from missing
    engine = MiniRacer()
    engine.eval(_AROUND % _native.CHART_SCRIPT)
    return engine


def specification(
    drawn: tuple[list[tuple[str, str]], str], figure: str | None, width: int | None, theme: str
) -> dict[str, Any]:
    """The Vega-Lite of one of the figures that a result has ``drawn``."""
    names, data = drawn
    known = [name for name, _ in names]
    if not known:
        raise ValueError("there is no figure: nothing was run")
    if figure is not None and figure not in known:
        raise ValueError(f"there is no figure called {figure!r}; accepted: {', '.join(map(repr, known))}")
    if theme not in ("light", "dark"):
        raise ValueError(f"theme is {theme!r}; accepted: 'light' or 'dark'")
    if width is not None and not 100 <= width <= 10_000:
        raise ValueError(f"width is {width}; accepted: 100 to 10000 pixels")
    options = {"theme": theme} if width is None else {"theme": theme, "width": width}
    made = _engine().call("specified", data, known.index(figure) if figure else 0, options)
    return json.loads(made)  # type: ignore[no-any-return]
