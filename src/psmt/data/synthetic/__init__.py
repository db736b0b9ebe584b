"""Made-up films and brain scans whose true motion, cuts or states are known."""
