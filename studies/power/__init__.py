"""Power of the tests behind two claims: films with a planted effect, and films without."""
