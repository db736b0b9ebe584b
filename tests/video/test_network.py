"""The small network: its steps, and that it learns what no line fits."""

import numpy as np
import pytest

from psmt.video.correction import Perceptron


@pytest.fixture
def network(engine):
    return Perceptron(3, engine.frames)


def output(layers, rows):
    """Output (n,) of layers for rows (n, n_inputs), in float64."""
    values = rows.astype(np.float64)
    for weights, biases in layers[:-1]:
        values = np.maximum(values @ weights + biases, 0)
    return (values @ layers[-1][0] + layers[-1][1])[:, 0]


def batch(n, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 3)).astype(np.float32)
    units = rng.uniform(0.5, 2.0, n)
    return rows, np.stack([units * np.abs(rows[:, 0]), units], axis=1).astype(np.float32)


def test_it_begins_as_zero(network, engine):
    inputs = engine.frames.levels(np.random.default_rng(0).standard_normal((3, 4, 5)))
    said = engine.frames.perceptron((inputs,), network.layers(network.weights))
    assert np.array_equal(engine.frames.numpy(said), np.zeros((4, 5)))


def test_the_gradient_is_that_of_the_mean_squared_error(network, engine):
    own, rng = engine.frames, np.random.default_rng(1)
    weights = own.numpy(network.weights) + 0.1 * rng.standard_normal(len(network.weights))
    rows, aims = batch(50)

    def loss(given):
        said = output(network.layers(given), rows)
        return np.mean((aims[:, 0] - aims[:, 1].astype(np.float64) * said) ** 2)

    found = own.numpy(network.gradient(own.levels(weights), own.levels(rows), own.levels(aims)))
    for k in rng.choice(len(weights), 60, replace=False):
        step = 1e-5 * np.eye(1, len(weights), k)[0]
        wanted = (loss(weights + step) - loss(weights - step)) / 2e-5
        assert found[k] == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def test_its_steps_are_those_of_adam(network, engine):
    torch = pytest.importorskip("torch")
    own, sets = engine.frames, [batch(64, seed) for seed in range(3)]
    there = torch.nn.Parameter(torch.from_numpy(own.numpy(network.weights).copy()))
    adam = torch.optim.Adam([there], lr=5e-3)
    for rows, aims in sets:
        gradient = network.gradient(own.levels(there.detach().numpy()), own.levels(rows), own.levels(aims))
        there.grad = torch.from_numpy(own.numpy(gradient).copy())
        torch.nn.utils.clip_grad_norm_([there], 1.0)
        adam.step()
    rows, aims = (own.levels(np.stack(parts)) for parts in zip(*sets, strict=True))
    network.train(rows, aims)
    assert not np.allclose(own.numpy(network.weights), there.detach().numpy(), atol=1e-5)
    network.adopt()
    assert np.allclose(own.numpy(network.weights), there.detach().numpy(), atol=1e-5)


def test_it_learns_what_no_line_fits_and_goes_on_from_its_state(network, engine):
    own, other = engine.frames, Perceptron(3, engine.frames)
    for seed in range(300):
        if seed == 150:
            other.set_state(network.get_state())
        rows, aims = (own.levels(part[None]) for part in batch(256, seed))
        for one in (network, other)[: 1 + (seed >= 150)]:
            one.train(rows, aims)
            one.adopt()
    rows, _ = batch(1000, 999)
    said = output([tuple(map(own.numpy, layer)) for layer in network.layers(network.weights)], rows)
    # The best line leaves all of the variance of |x|.
    assert np.mean((said - np.abs(rows[:, 0])) ** 2) < 0.02 * np.var(np.abs(rows[:, 0]))
    assert np.array_equal(own.numpy(network.weights), own.numpy(other.weights))
