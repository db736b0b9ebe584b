"""At which speed and noise each method predicts better than copying, on the built-in film."""
