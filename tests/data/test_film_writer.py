"""Films that are written: read back, they are what was put in; interrupted, they are not there."""

import numpy as np
import pytest

from psmt import open_frames
from psmt.data.readers import film_writer as films
from psmt.data.readers.film_writer import joining_films, writing_film


@pytest.mark.parametrize("shape", [(48, 64), (33, 47)])
def test_pictures_come_back(tmp_path, shape):
    y, x = np.mgrid[: shape[0], : shape[1]]
    pictures = [
        np.stack([(4 * x + 8 * k) % 256, (4 * y) % 256, np.full(shape, 100)], axis=2).astype(np.uint8) for k in range(7)
    ]
    with writing_film(tmp_path / "film.mp4", fps=30000 / 1001) as add:
        for picture in pictures:
            add(picture)
    film = open_frames(tmp_path / "film.mp4")
    assert film.shape == (shape[0] + shape[0] % 2, shape[1] + shape[1] % 2)
    assert film.fps == pytest.approx(29.97, abs=0.01)
    read = [frame[: shape[0], : shape[1], 1] for frame in film.iter_colour()]
    assert len(read) == 7
    np.testing.assert_allclose(read, [picture[:, :, 1] / 255 for picture in pictures], atol=0.15)


@pytest.mark.parametrize("pictures", [0, 3])
def test_what_is_interrupted_leaves_the_old_film_and_no_other_file(tmp_path, pictures):
    path = tmp_path / "film.mp4"
    path.write_bytes(b"the old one")
    with pytest.raises(KeyboardInterrupt), writing_film(path) as add:
        for _ in range(pictures):
            add(np.zeros((32, 32, 3), dtype=np.uint8))
        raise KeyboardInterrupt
    assert [file.name for file in tmp_path.iterdir()] == ["film.mp4"]
    assert path.read_bytes() == b"the old one"


@pytest.mark.parametrize("encoder", ["libx264", "mpeg4"])
def test_joined_films_have_all_pictures_at_one_rate(tmp_path, monkeypatch, encoder):
    monkeypatch.setattr(films, "_ENCODERS", {encoder: films._ENCODERS[encoder], "mpeg4": films._ENCODERS["mpeg4"]})
    rng = np.random.default_rng(0)
    parts = []
    for n_pictures in (7, 30, 1, 2, 3):
        parts.append(tmp_path / f"{len(parts)}.mp4")
        with writing_film(parts[-1], fps=30000 / 1001) as add:
            for _ in range(n_pictures):
                add(rng.integers(0, 255, size=(33, 40, 3), dtype=np.uint8))
    with joining_films(parts, tmp_path / "all.mp4"):
        assert not (tmp_path / "all.mp4").exists()
    film = open_frames(tmp_path / "all.mp4")
    assert (film.n_frames, film.fps) == (43, pytest.approx(29.97, abs=0.01))
    np.testing.assert_array_equal(list(film), [frame for part in parts for frame in open_frames(part)])
    with films.av.open(tmp_path / "all.mp4") as container:
        times = [frame.time for frame in container.decode(video=0)]
    np.testing.assert_allclose(times, np.arange(43) * 1001 / 30000, atol=1e-6)


def test_the_next_best_encoder_serves_where_the_first_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(films, "_ENCODERS", {"no-such-encoder": {}, "mpeg4": films._ENCODERS["mpeg4"]})
    with writing_film(tmp_path / "film.mp4") as add:
        add(np.full((32, 32, 3), 128, dtype=np.uint8))
    assert len(list(open_frames(tmp_path / "film.mp4"))) == 1
    monkeypatch.setattr(films, "_ENCODERS", {"no-such-encoder": {}})
    with pytest.raises(films.PSMTError, match="no-such-encoder; reinstall av"):
        films.encoder()
