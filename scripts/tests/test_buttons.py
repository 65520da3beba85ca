import buttons
import pytest
from project import ROOT


def test_each_opens_a_tagged_copy_of_what_is_there():
    lines = buttons.buttons("owner/rules", "v0.1.0")
    assert len(lines) == len(buttons.PLACES) and all("owner/rules" in line and "v0.1.0" in line for line in lines)
    assert (ROOT / buttons.FIRST).exists()


@pytest.mark.parametrize(("repo", "tag"), [("rules", "v0.1.0"), ("a/b/c", "v0.1.0"), ("owner/rules", "main"), ("owner/rules", "")])
def test_a_branch_or_half_an_address_is_refused(repo, tag):
    with pytest.raises(ValueError):
        buttons.buttons(repo, tag)
