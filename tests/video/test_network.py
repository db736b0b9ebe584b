"""The small network: its steps, and that it learns what no line fits."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from psmt.video.correction import CONVOLUTIONAL, PIXELWISE, Network


@pytest.fixture(params=[PIXELWISE, CONVOLUTIONAL], ids=["pixelwise", "convolutional"])
def network(engine, request):
    return Network(3, engine.frames, request.param)


def output(network, weights, crops):
    """Output (n_crops, crop, crop) for crops (n_crops, seen, seen, n_inputs), in float64, by sliding windows."""
    values = crops.astype(np.float64)
    for k, (side, (matrix, biases)) in enumerate(zip(network.form.sides, network.layers(weights), strict=True)):
        values = np.maximum(values, 0) if k else values
        around = sliding_window_view(values, (side, side), axis=(1, 2))
        filters = matrix.reshape(side, side, -1, len(biases))
        values = np.einsum("nyxcij,ijco->nyxo", around, filters, optimize=True) + biases
    return values[..., 0]


def batch(network, n, seed=0):
    """Crops (n, seen, seen, 3) and aims (n, crop, crop, 2): the size of the first input, as far away as is seen."""
    rng = np.random.default_rng(seed)
    reach = network.form.seen // 2 - network.form.crop // 2
    crop = 4 if reach else 1
    crops = rng.standard_normal((n, crop + 2 * reach, crop + 2 * reach, 3)).astype(np.float32)
    units = rng.uniform(0.5, 2.0, (n, crop, crop))
    beside = crops[:, reach : reach + crop, 2 * reach :, 0]
    return crops, np.stack([units * np.abs(beside), units], axis=-1).astype(np.float32)


def test_it_begins_as_zero(network, engine):
    inputs = engine.frames.levels(np.random.default_rng(0).standard_normal((3, 14, 15)))
    said = engine.frames.network((inputs,), network.layers(network.weights))
    assert np.array_equal(engine.frames.numpy(said), np.zeros((14, 15)))


def test_the_gradient_is_that_of_the_mean_squared_error(network, engine):
    own, rng = engine.frames, np.random.default_rng(1)
    weights = own.numpy(network.weights) + 0.1 * rng.standard_normal(len(network.weights))
    crops, aims = batch(network, 50 if network.form is PIXELWISE else 4)

    def loss(given):
        said = output(network, given, crops)
        return np.mean((aims[..., 0] - aims[..., 1].astype(np.float64) * said) ** 2)

    found = own.numpy(network.gradient(own.levels(weights), own.levels(crops), own.levels(aims)))
    for k in rng.choice(len(weights), 60, replace=False):
        step = 1e-5 * np.eye(1, len(weights), k)[0]
        wanted = (loss(weights + step) - loss(weights - step)) / 2e-5
        assert found[k] == pytest.approx(wanted, rel=1e-3, abs=1e-4)


def test_its_steps_are_those_of_adam(network, engine):
    torch = pytest.importorskip("torch")
    own, sets = engine.frames, [batch(network, 64, seed) for seed in range(3)]
    there = torch.nn.Parameter(torch.from_numpy(own.numpy(network.weights).copy()))
    adam = torch.optim.Adam([there], lr=network.form.rate)
    for crops, aims in sets:
        gradient = network.gradient(own.levels(there.detach().numpy()), own.levels(crops), own.levels(aims))
        there.grad = torch.from_numpy(own.numpy(gradient).copy())
        torch.nn.utils.clip_grad_norm_([there], 1.0)
        adam.step()
    crops, aims = (own.levels(np.stack(parts)) for parts in zip(*sets, strict=True))
    network.train(crops, aims)
    assert not np.allclose(own.numpy(network.weights), there.detach().numpy(), atol=1e-5)
    network.adopt()
    assert np.allclose(own.numpy(network.weights), there.detach().numpy(), atol=1e-5)


def test_it_learns_what_no_line_fits_and_goes_on_from_its_state(network, engine):
    """With filters of 3 x 3 pixels, it learns this from an input two pixels away."""
    own, other = engine.frames, Network(3, engine.frames, network.form)
    for seed in range(240):
        if seed == 120:
            other.set_state(network.get_state())
        crops, aims = (own.levels(part[None]) for part in batch(network, 256 // max(network.form.sides) ** 2, seed))
        for one in (network, other)[: 1 + (seed >= 120)]:
            one.train(crops, aims)
            one.adopt()
    crops, aims = batch(network, 100, 999)
    said, truth = output(network, own.numpy(network.weights), crops), aims[..., 0] / aims[..., 1]
    # The best line leaves all of the variance of |x|.
    assert np.mean((said - truth) ** 2) < 0.02 * np.var(truth)
    assert np.array_equal(own.numpy(network.weights), own.numpy(other.weights))
