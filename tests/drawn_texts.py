"""Texts of a figure with the boxes that they take: none may lie on another, or outside."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg


def drawn_texts(figure):
    """Visible texts, tick labels included, each with its box."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    found = list(figure.texts)
    for axes in figure.axes:
        found += axes.texts
        if axes.axison:
            found += [axes.xaxis.label, axes.yaxis.label]
            for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
                ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
                found += [tick.label1 for tick in ticks]
    return [(t.get_text(), t.get_window_extent(renderer)) for t in found if t.get_visible() and t.get_text()]


def assert_texts_apart(figure):
    """No text overlaps another one, and all are inside the figure."""
    boxes = drawn_texts(figure)
    for (one, first), (other, second) in combinations(boxes, 2):
        assert not first.overlaps(second), (one, other)
    for text, box in boxes:
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, text
