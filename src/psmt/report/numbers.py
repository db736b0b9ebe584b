"""Format numbers as text."""

from collections.abc import Sequence


def signed(value: float) -> str:
    """Return a number as text, with two decimals and a typographic minus sign.

    >>> signed(-1.5), signed(-0.001)
    ('−1.50', '0.00')
    """
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def plus(number: str) -> str:
    """Return a number, given as text, with its sign: '+' is added to a positive number.

    >>> plus(signed(0.171)), plus(signed(-0.171)), plus("-3")
    ('+0.17', '−0.17', '−3')
    """
    return number.replace("-", "−") if number[0] in "-−" else f"+{number}"


def error(value: float) -> str:
    """Return an error as text with three significant digits.

    >>> [error(value) for value in (0.6594, 0.1, 0.000114, 7.45e-8)]
    ['0.659', '0.100', '0.000114', '7.45e−8']
    """
    if not abs(value) < 1e-4 or value == 0:
        return f"{value:#.3g}".rstrip(".")
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}e{int(exponent)}".replace("-", "−")


def ratio(value: float) -> str:
    """Return a ratio as text with two or three significant digits, or more if it is close to 1 or large.

    >>> [ratio(value) for value in (0.0213, 0.99951, 1.34, 428.6, 12424.4, -0.071, float("nan"))]
    ['0.021', '0.9995', '1.34', '429', '12,424', '−0.071', 'n/a']
    """
    if value != value:
        return "n/a"
    if value >= 100:
        return f"{value:,.0f}"
    if abs(value - 1) < 0.005:
        return f"{value:.4f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}".replace("-", "−")


def percent(value: float) -> str:
    """Return a fraction as text: a percentage with two significant digits.

    >>> [percent(value) for value in (0.9844, 0.031, 0.000123)]
    ['98%', '3.1%', '0.012%']
    """
    return f"{100 * value:.0f}%" if value >= 0.095 else f"{100 * value:.2g}%"


def seconds(value: float) -> str:
    """Return a duration in seconds as text, in seconds, minutes or hours.

    >>> [seconds(value) for value in (0.31, 42.4, 95, 4000)]
    ['0.3 s', '42 s', '1 min 35 s', '1 h 6 min']
    """
    whole = round(value)
    if whole < 60:
        return f"{value:.1f} s" if value < 10 else f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def listed(words: Sequence[object]) -> str:
    """Return words joined by commas and 'and'.

    >>> listed([128, 256, 512])
    '128, 256 and 512'
    """
    texts = [str(word) for word in words]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
