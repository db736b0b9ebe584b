"""Moving shapes are where the film says."""

import numpy as np
from studies.layers.shapes import MovingShapes


def centre(frame, ground=0.5):
    """Row and column of what is not ground."""
    weight = np.abs(frame - ground)
    return [np.average(at, weights=weight) for at in np.indices(frame.shape)]


def test_a_disc_is_where_its_motion_says():
    film = MovingShapes(n_frames=400, n_shapes=1, speed=0.7, size=40, seed=1)
    motion = film.motion()
    inside = [t for t in range(400) if 8 < motion.row[t, 0] < 32 and 8 < motion.column[t, 0] < 32]
    assert len(inside) > 20
    for t in inside[::5]:
        np.testing.assert_allclose(centre(film[t]), [motion.row[t, 0], motion.column[t, 0]], atol=0.05)
    moved = np.diff(np.unwrap(np.stack([motion.row, motion.column]), axis=1, period=40), axis=1)
    np.testing.assert_allclose(np.hypot(*moved), 0.7)
    np.testing.assert_allclose(moved[:, 0, 0], film.velocity[0])


def test_shapes_are_the_same_for_the_same_seed_whatever_the_length():
    long, short = MovingShapes(n_frames=50, noise=0.1), MovingShapes(n_frames=5, noise=0.1)
    np.testing.assert_array_equal(long[4], short[4])
    assert not np.array_equal(long[4], MovingShapes(n_frames=50, noise=0.1, seed=1)[4])
    assert long.checksum() != short.checksum()
    assert long[4].dtype == np.float32 and long[4].min() >= 0 and long[4].max() <= 1
