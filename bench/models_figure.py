#!/usr/bin/env python3
"""Draws docs/images/models.svg from the tables of docs/models.md.

    python3 bench/models_figure.py

The models are in the order of the mean of their two accuracies. An asterisk in a table becomes a hollow dot.
"""
import os
import re

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")
BLUE, BROWN, GREY = "#2b6cb0", "#b7560b", "#666"
TOP, STEP, WIDTH = 82, 21, 840
PANELS = [("SIVAL6-MIPL", 140, 0.5, 1.0, 600), ("Birdsong-MIPL", 490, 0.2, 0.9, 357)]  # left edge, first and last accuracy, pixels for 1
ACCURACY = r"(\d\.\d+)±(\d\.\d+)(\*?)"


def read():
    """Returns name, colour, two accuracies with deviations and asterisks, and seconds of each model."""
    with open(os.path.join(DOCS, "models.md")) as f:
        text = f.read()
    rows, color = [], BLUE
    for line in text.splitlines():
        if line.startswith("Multi-instance methods"):
            color = BROWN
        m = re.fullmatch(rf"\| `([\w-]+)` \|.*\| {ACCURACY} \| {ACCURACY} \| ([\d.]+) \|", line)
        if m:
            rows.append((m[1], color, m.groups()[1:4], m.groups()[4:7], m[8]))
    m = re.search(rf"`(proden-mean)` has {ACCURACY} on SIVAL6 and {ACCURACY}", text)
    rows.append((m[1], GREY, m.groups()[1:4], m.groups()[4:7], "0.1"))
    return sorted(rows, key=lambda r: -float(r[2][0]) - float(r[3][0]))


def text(x, y, what, size=12, anchor="start", fill="#444", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
            f'font-weight="{weight}">{what}</text>')


def dot(x, y, color, hollow):
    style = f'r="4.2" fill="#fff" stroke="{color}" stroke-width="1.8"' if hollow else f'r="5" fill="{color}"'
    return f'<circle cx="{x:.1f}" cy="{y}" {style}/>'


def draw(rows):
    bottom = TOP + STEP * len(rows) - 6
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 52}" width="{WIDTH}" height="{bottom + 52}" '
           'font-family="Helvetica, Arial, sans-serif" role="img" aria-labelledby="t d">')
    yield '<title id="t">Test accuracy and time of the shipped models</title>'
    yield ('<desc id="d">Accuracy on SIVAL6-MIPL and on Birdsong-MIPL with one false label, and seconds of a training; the '
           'numbers are in the tables of the page.</desc>')
    yield f'<rect width="{WIDTH}" height="{bottom + 52}" fill="#fff"/>'
    for x, color, hollow, what in ((20, BLUE, False, "methods for candidate sets"), (214, BROWN, False, "multi-instance methods"),
                                   (382, GREY, False, "mean of each bag"), (513, "#444", True, "other settings than the spec")):
        yield dot(x, 18, color, hollow)
        yield text(x + 10, 22, what)
    for panel, (title, left, low, high, scale) in enumerate(PANELS):
        yield text(left, 54, title, 14, fill="#222", weight="bold")
        for tenth in range(round(low * 10), round(high * 10) + 1):
            x = left + (tenth / 10 - low) * scale
            yield f'<line x1="{x:.1f}" y1="66" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
            yield text(x, bottom + 18, f"{tenth / 10:g}", anchor="middle", fill="#555")
        yield text(left + (high - low) * scale / 2, bottom + 38, "test accuracy ± standard deviation", anchor="middle", fill="#555")
        for i, row in enumerate(rows):
            mean, deviation, star = row[2 + panel]
            x, reach, y = left + (float(mean) - low) * scale, float(deviation) * scale, TOP + STEP * i
            yield f'<line x1="{x - reach:.1f}" y1="{y}" x2="{x + reach:.1f}" y2="{y}" stroke="{row[1]}" stroke-width="2" opacity="0.45"/>'
            yield dot(x, y, row[1], star)
    yield text(822, 54, "seconds", 14, "end", "#222", "bold")
    for i, row in enumerate(rows):
        yield text(128, TOP + STEP * i + 4, row[0], anchor="end", fill="#222")
        yield text(822, TOP + STEP * i + 4, row[4], anchor="end", fill="#222")
    yield "</svg>"


if __name__ == "__main__":
    with open(os.path.join(DOCS, "images", "models.svg"), "w") as f:
        f.write("\n".join(draw(read())) + "\n")
