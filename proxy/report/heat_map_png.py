"""Heat maps as one picture: PNG, for documents that take no SVG. Needs Pillow, the extra `png`."""

from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from math import ceil
from typing import TYPE_CHECKING

from planner.errors import KeyholeError
from proxy.report.heat_map import HeatMap
from proxy.report.heat_map_layout import CHARACTER, EDGE, FONT, Box, Label, laid_out

if TYPE_CHECKING:
    from PIL import Image, ImageFont

MOST_PIXELS = 100_000_000
_FONTS = ("DejaVuSansMono.ttf", "LiberationMono-Regular.ttf", "DejaVuSans.ttf", "Menlo.ttc", "consola.ttf", "arial.ttf")
_FINE = 2  # pixels of the file for one of the layout, so that it prints well


class TooLarge(ValueError):
    """The picture would have more than `MOST_PIXELS`."""


def check_png() -> None:
    """Raise KH011 where the library that draws PNG is not installed."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise KeyholeError(
            "KH011",
            "a PNG needs the library Pillow, which is not installed",
            hint="Install Keyhole with the extra png, or write --svg, which needs nothing.",
        ) from None


def heat_map_png(maps: Sequence[HeatMap], *, title: str) -> bytes:
    """The picture of `heat_map_svg` as a PNG file, twice as fine; it has no tooltips.

    The font is one that the machine has, or else Pillow's own, which has few letters beyond ASCII; what a font lacks is
    drawn as empty boxes. The SVG has every letter. Raises KH011, and `TooLarge`.
    """
    check_png()
    from PIL import Image, ImageDraw

    picture = laid_out(maps, title=title)
    size = round(picture.width * _FINE), round(picture.height * _FINE)
    if size[0] * size[1] > MOST_PIXELS:
        raise TooLarge
    canvas = Image.new("RGB", size, "#ffffff")
    font = _font()
    for part in picture.parts:
        if isinstance(part, Box):
            corners = [part.x * _FINE, part.y * _FINE, (part.x + part.width) * _FINE, (part.y + part.height) * _FINE]
            ImageDraw.Draw(canvas).rectangle(corners, fill=part.fill, outline=EDGE, width=_FINE)
        label = part.label if isinstance(part, Box) else part
        if label is not None and label.text:
            _write(canvas, label, font)
    written = BytesIO()
    canvas.save(written, format="PNG")
    return written.getvalue()


def _font() -> "ImageFont.FreeTypeFont":
    from PIL import ImageFont

    for name in _FONTS:
        with suppress(OSError):
            return ImageFont.truetype(name, FONT * _FINE)
    built_in = ImageFont.load_default(FONT * _FINE)
    assert isinstance(built_in, ImageFont.FreeTypeFont)
    return built_in


def _write(canvas: "Image.Image", label: Label, font: "ImageFont.FreeTypeFont") -> None:
    from PIL import Image, ImageDraw

    room = len(label.text) * CHARACTER * _FINE
    wide = font.getlength(label.text)
    if wide > room:
        font = font.font_variant(size=font.size * room / wide)
    at = label.x * _FINE, label.y * _FINE
    thick = 0.5 if label.bold else 0.0
    if not label.turned:
        ImageDraw.Draw(canvas).text(at, label.text, fill=label.ink, font=font, anchor="ls", stroke_width=thick)
        return
    high = 2 * FONT * _FINE
    mask = Image.new("L", (max(1, ceil(min(wide, room))), high))
    ImageDraw.Draw(mask).text((0, high // 2), label.text, fill=255, font=font, anchor="ls", stroke_width=thick)
    upwards = mask.transpose(Image.Transpose.ROTATE_90)
    canvas.paste(label.ink, (round(at[0]) - high // 2, round(at[1]) - upwards.height), upwards)
