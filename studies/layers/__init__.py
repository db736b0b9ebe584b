"""Do sparse codes and the embedding reduce the error on films? Every part of a film model is left out in turn."""
