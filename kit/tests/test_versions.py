"""What is said of a Triton that is newer than those tested."""

import warnings

import pytest

from kit import versions


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(versions, "_told", set())


@pytest.mark.parametrize("version", ["3.10.0", "3.10.0+git1a2b3c", "4.0.0", "3.11.0.dev1"])
def test_a_newer_triton_warns_once(version):
    with pytest.warns(versions.UntestedTriton) as told:
        versions.warn_when_newer(version)
    text = str(told[0].message)
    assert version in text and "3.6.0, 3.7.1, 3.8.0 and 3.9.0" in text and f'make regress TRITON="{version}"' in text
    assert text.count(". ") == 1 and "install triton==3.9.0" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions.warn_when_newer(version)


@pytest.mark.parametrize("version", [*versions.TESTED, "3.9.5", "3.5.1", "unknown"])
def test_a_tested_or_older_triton_does_not(version):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions.warn_when_newer(version)


def test_tested_versions_are_in_order():
    assert list(versions.TESTED) == sorted(versions.TESTED, key=versions.minor)
