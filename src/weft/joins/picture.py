"""Pictures as a few shapes: written as SVG and HTML by this module, as PNG and PDF by matplotlib if it is installed."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from weft.errors import ArgumentError

Anchor = Literal["start", "middle", "end"]
INK, QUIET, FAINT = "#1f2933", "#66727f", "#e4e8ec"
LEFT, RIGHT = "#1763b6", "#b4540a"
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
_TEXT_FORMATS = ("svg", "html")
_DOTS_PER_INCH = 100
_ALIGNMENTS: dict[Anchor, Literal["left", "center", "right"]] = {"start": "left", "middle": "center", "end": "right"}


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    color: str = INK
    width: float = 1.2


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with round corners, filled or as an outline."""

    x: float
    y: float
    width: float
    height: float
    color: str
    opacity: float = 1.0
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Dot:
    """A circle, filled or as an outline."""

    x: float
    y: float
    radius: float
    color: str
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; `y` is its base line."""

    x: float
    y: float
    text: str
    color: str = INK
    size: float = 12
    anchor: Anchor = "start"
    bold: bool = False


Shape = Line | Box | Dot | Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture of a join: a notebook shows it, and `savefig` writes it to a file.

    Parameters
    ----------
    title
        What the picture shows, in one sentence; read aloud in place of the picture.  Required.
    width, height
        The size in pixels.  Required.
    shapes
        What is drawn, from back to front.  Required.

    Examples
    --------
    ::

        picture = weft.explain_join(spec).plot()
        picture.savefig("join.svg")  # or .html; .png and .pdf need pip install 'weft[plot]'
    """

    title: str
    width: float
    height: float
    shapes: tuple[Shape, ...] = field(repr=False)

    def to_svg(self) -> str:
        """Return the picture as an SVG document."""
        width, height = _number(self.width), _number(self.height)
        opening = _tag(
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            role="img",
            aria_label=self.title,
            font_family=_FONT,
            style="max-width:100%;height:auto",
        )
        background = _tag("rect", "/", width=width, height=height, rx=6, fill="#ffffff")
        title = f"<title>{html.escape(self.title)}</title>"
        return "\n".join([opening, title, background, *map(_write_shape, self.shapes), "</svg>"]) + "\n"

    def to_html(self) -> str:
        """Return the picture as an HTML page of its own, which loads nothing from elsewhere."""
        return (
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{html.escape(self.title)}</title>\n'
            f'<body style="margin:1.5rem">\n{self.to_svg()}</body>\n</html>\n'
        )

    def _repr_html_(self) -> str:
        return self.to_svg()

    def savefig(self, fname: str | Path, *, format: str | None = None) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        fname
            Where to write.  Required.
        format
            ``"svg"``, ``"html"``, or a format of matplotlib such as ``"png"`` and ``"pdf"``.  None (default) takes
            the ending of the file name.
        """
        path = Path(fname)
        kind = (format or path.suffix.removeprefix(".")).lower()
        if not kind:
            raise ArgumentError(
                f"savefig {str(fname)!r}: the name has no ending that tells the format",
                code="W0304",
                help="write for example savefig('join.svg'), or format='svg'",
            )
        if kind in _TEXT_FORMATS:
            path.write_text(self.to_svg() if kind == "svg" else self.to_html(), encoding="utf-8")
            return
        _save_with_matplotlib(self, path, kind)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _tag(name: str, end: str = "", **attributes: str | float | None) -> str:
    """Return a tag; attributes that are None are left out."""
    written = [name]
    for key, value in attributes.items():
        if value is not None:
            text = value if isinstance(value, str) else _number(value)
            written.append(f'{key.replace("_", "-")}="{html.escape(text)}"')
    return f"<{' '.join(written)}{end}>"


def _write_shape(shape: Shape) -> str:
    if isinstance(shape, Line):
        ends = {"x1": shape.x1, "y1": shape.y1, "x2": shape.x2, "y2": shape.y2}
        return _tag("line", "/", **ends, stroke=shape.color, stroke_width=shape.width)
    if isinstance(shape, Label):
        tag = _tag(
            "text",
            x=shape.x,
            y=shape.y,
            font_size=shape.size,
            fill=shape.color,
            text_anchor=None if shape.anchor == "start" else shape.anchor,
            font_weight="600" if shape.bold else None,
        )
        return f"{tag}{html.escape(shape.text)}</text>"
    paint: dict[str, str | float | None] = {"fill": shape.color}
    if not shape.filled:
        paint = {"fill": "#ffffff", "stroke": shape.color, "stroke_width": 1.6}
    if isinstance(shape, Dot):
        return _tag("circle", "/", cx=shape.x, cy=shape.y, r=shape.radius, **paint)
    corner: dict[str, str | float | None] = {"x": shape.x, "y": shape.y, "width": shape.width, "height": shape.height}
    return _tag("rect", "/", **corner, rx=3, **paint, opacity=None if shape.opacity == 1 else shape.opacity)


def _save_with_matplotlib(picture: Picture, path: Path, kind: str) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # an extra
        from matplotlib.figure import Figure  # noqa: PLC0415  # an extra
    except ImportError as error:
        raise ArgumentError(
            f"savefig: {kind.upper()} files need matplotlib, which is not installed",
            code="W0311",
            help="type: pip install 'weft[plot]'\nor write an .svg or .html file, which need no other package",
        ) from error
    # A figure without pyplot: no window, no global state, nothing of the user's own figures changes.
    figure = Figure(figsize=(picture.width / _DOTS_PER_INCH, picture.height / _DOTS_PER_INCH), dpi=_DOTS_PER_INCH)
    canvas = FigureCanvasAgg(figure)
    formats = canvas.get_supported_filetypes()
    if kind not in formats:
        raise ArgumentError(
            f"savefig: {kind!r} is not a known format",
            code="W0302",
            help=f"write one of {', '.join(sorted({*_TEXT_FORMATS, *formats}))}",
        )
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    axes.set_axis_off()
    for place, artist in enumerate(_artists(picture.shapes)):
        artist.set_zorder(place)
        axes.add_artist(artist)
    figure.savefig(path, format=kind, facecolor="#ffffff", dpi=2 * _DOTS_PER_INCH)


def _artists(shapes: Iterable[Shape]) -> Iterator[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415  # an extra
    from matplotlib.patches import Circle, FancyBboxPatch  # noqa: PLC0415  # an extra
    from matplotlib.text import Text  # noqa: PLC0415  # an extra

    points = 72 / _DOTS_PER_INCH  # shapes are measured in pixels, matplotlib measures fonts and lines in points
    for shape in shapes:
        if isinstance(shape, Line):
            ends = (shape.x1, shape.x2), (shape.y1, shape.y2)
            yield Line2D(*ends, color=shape.color, linewidth=shape.width * points)
        elif isinstance(shape, Label):
            # A dollar sign would start a formula.
            text = Text(
                shape.x, shape.y, shape.text.replace("$", r"\$"), color=shape.color, fontsize=shape.size * points
            )
            text.set_horizontalalignment(_ALIGNMENTS[shape.anchor])
            text.set_fontweight("bold" if shape.bold else "normal")
            yield text
        else:
            patch: Any
            if isinstance(shape, Dot):
                patch = Circle((shape.x, shape.y), shape.radius)
            else:
                style = "round,pad=0,rounding_size=3"
                patch = FancyBboxPatch((shape.x, shape.y), max(shape.width, 0.1), shape.height, boxstyle=style)
                patch.set_alpha(shape.opacity)
            patch.set_facecolor(shape.color if shape.filled else "#ffffff")
            patch.set_edgecolor("none" if shape.filled else shape.color)
            patch.set_linewidth(1.6 * points)
            yield patch


def measure_text(text: str, size: float) -> float:
    """Return about how many pixels a text is wide; the font of the reader is not known."""
    return math.ceil(sum(0.62 if c.isupper() or ord(c) > 0x2E80 else 0.52 for c in text) * size)


def shorten_text(text: str, width: float, size: float) -> str:
    """Return the text, cut with an ellipsis to fit about `width` pixels.

    >>> shorten_text("left.symbol = right.symbol", 80, 12)
    'left.symbol…'
    """
    if measure_text(text, size) <= width:
        return text
    while text and measure_text(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def draw_shares(title: str, shares: Iterable[tuple[str, int, int, str]], notes: Iterable[str] = ()) -> Picture:
    """Return bars that show how many of a total have a match.

    Each share is a name, the number that match, the total, and the color of its side; each note is a line below them.
    """
    width, top, step, start, span = 640.0, 46.0, 46.0, 110.0, 330.0
    shapes: list[Shape] = [Label(16, 26, title, bold=True, size=13)]
    rows = list(shares)
    for place, (name, matched, total, color) in enumerate(rows):
        y = top + place * step
        part = matched / total if total else 0.0
        shapes += [
            Label(start - 12, y + 16, name, anchor="end"),
            Box(start, y, span, 22, FAINT),
            *([Box(start, y, span * part, 22, color)] if matched else []),
            Label(start + span + 12, y + 16, f"{matched:,} of {total:,} match ({format_share(matched, total)})"),
        ]
    height = top + step * len(rows)
    for note in notes:
        shapes.append(Label(16, height + 6, note, color=QUIET))
        height += 20
    return Picture(title=title, width=width, height=height, shapes=tuple(shapes))


def format_share(part: int, total: int) -> str:
    """Return a share in percent that is 0 or 100 only if it is exactly that.

    >>> format_share(1, 3), format_share(9999, 10000), format_share(10, 10), format_share(0, 0)
    ('33.3 %', '> 99.9 %', '100 %', 'no rows')
    """
    if not total:
        return "no rows"
    if part in (0, total):
        return f"{100 * part // total} %"
    tenths = 1000 * part / total
    if tenths < 1:
        return "< 0.1 %"
    return "> 99.9 %" if tenths > 999 else f"{tenths / 10:.1f} %"
