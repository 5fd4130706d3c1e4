from belated_studies.paper.departures import CONTRADICTIONS, DEPARTURES, departures


def test_every_departure_and_contradiction_is_numbered() -> None:
    said = departures().paragraphs
    assert len(said) == 2 + len(DEPARTURES) + len(CONTRADICTIONS)
    assert said[1].startswith("1. Returns are exact")
    assert said[-1].startswith(f"{len(CONTRADICTIONS)}. ")
