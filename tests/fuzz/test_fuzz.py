"""A few hundred of the cases that `make fuzz` has thousands of: each ends healthy or refused, or it is a failure."""

import pytest

from fuzz.running import Attack
from fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

CASES = {
    "calls": 60,
    "models": 40,
    "zips": 40,
    "scans": 30,
    "arrays": 60,
    "tables": 60,
    "images": 40,
    "films": 40,
    "cells": 15,
    "commands": 6,
    "studies": 4,
}
SEED = 0


@pytest.fixture(scope="module")
def attack():
    with Attack() as attack:
        yield attack


def failures(outcomes):
    return [
        f"{found['target']} {found['number']} ({found['case']}): {found['why']}"
        for found in outcomes
        if found["ended"] == "failed"
    ]


def test_fields_of_models_are_refused_or_harmless(attack):
    """A part of all alterations, spread over all models and fields; `make fuzz` does every one."""
    numbers = range(SEED, 53_000, 997)  # a prime, so that it meets all models
    outcomes = list(attack.run(("alterations", number) for number in numbers))
    assert not failures(outcomes)
    ends = [found["ended"] for found in outcomes]
    assert ends.count("refused") > 30
    assert ends.count("fine") > 3


@pytest.mark.parametrize("target", CASES)
def test_damage_is_refused_or_harmless(attack, target):
    assert not failures(attack.run((target, number) for number in range(SEED, SEED + CASES[target])))


def test_cases_that_failed_once(attack):
    """Constant rows whose principal components are none; a rate of 1e99, which made a step singular; a text that is not
    Unicode; escape codes in the name of a person; a prior for a candidate without a name.
    """
    numbers = [("calls", 7301001640), ("calls", 7301002622), ("models", 8101002613), ("scans", 8103000766)]
    numbers += [("alterations", 5052)]
    assert not failures(attack.run(numbers))


def test_every_target_is_tried():
    assert {*CASES, "alterations"} == set(TARGETS)
