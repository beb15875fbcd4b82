"""A reader who asks for much waits for it alone, and holds up nobody."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from proctor.reading import compare_handler
from proctor.server.quotas import MOST_WAITING_READS, READS_AT_ONCE
from proctor.server.reading import reader
from tests.server.runs import making
from tests.server.serving import Answer, Api, Served
from tests.waiting import SECONDS, wait_for


class HeldComparisons:
    """Comparisons that begin, and end once they are let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = threading.Event()
        self._compare = compare_handler.kept.compare

    def compare(self, *args: Any) -> Any:
        self.begun += 1
        assert self.may_end.wait(SECONDS)
        return self._compare(*args)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldComparisons]:
    comparisons = HeldComparisons()
    monkeypatch.setattr(compare_handler.kept, "compare", comparisons.compare)
    yield comparisons
    comparisons.may_end.set()


def upload_run(api: Api, name: str) -> str:
    run = str(api.post("/uploads", {"client_run_id": name, "environment": "sums", "model": "m"})["id"])
    api.post(f"/uploads/{run}/reports", {"batch": 1, "rows": [json.loads(making.row(1))]})
    api.post(f"/uploads/{run}/end", {"status": "finished"})
    return run


def test_a_reader_of_many_comparisons_keeps_no_other_waiting(served: Served, held: HeldComparisons) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    one, other = upload_run(eve, "one"), upload_run(eve, "other")
    mine = upload_run(ada, "mine")
    asked = READS_AT_ONCE + MOST_WAITING_READS + 5

    with ThreadPoolExecutor(asked) as threads:
        path = f"/compare?run={one}&run={other}&margin="
        answers: list[Future[Answer]] = [
            threads.submit(eve, "GET", f"{path}{number / 1000}") for number in range(1, asked + 1)
        ]
        try:
            wait_for(lambda: sum(answer.done() for answer in answers) == 5)
            assert held.begun == READS_AT_ONCE
            assert len(ada.get(f"/runs/{mine}/rollouts")["items"]) == 1
        finally:
            held.may_end.set()
        statuses = [answer.result(SECONDS).status for answer in answers]

    assert (statuses.count(200), statuses.count(429)) == (asked - 5, 5)


def test_rows_are_unpacked_beside_the_loop_that_serves_everyone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = served.user("ada")
    run = upload_run(ada, "mine")
    loop = served.call(find_thread)
    used: list[int] = []

    def unpack(packed: bytes) -> bytes:
        used.append(threading.get_ident())
        return zlib.decompress(packed)

    monkeypatch.setattr(reader, "zlib", SimpleNamespace(decompress=unpack))

    ada.get(f"/runs/{run}/search?q=anything")
    assert used
    assert loop not in used


async def find_thread() -> int:
    return threading.get_ident()
