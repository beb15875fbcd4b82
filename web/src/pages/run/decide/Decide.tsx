/** What to do about a run: may it pass, what would more tasks show, what does another rubric say, how did it go before. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { runQuery } from "#/api/runs";
import { changeSearch, type SearchChange } from "#/app/search";
import { PageBody } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import { Gate } from "./Gate";
import { History } from "./History";
import { Plan } from "./Plan";
import { Rescore } from "./Rescore";
import type { DecideSearch } from "./search";

const route = getRouteApi("/runs/$runId/decide");

export type ChangeDecision = (change: SearchChange<DecideSearch>) => void;

export function Decide() {
  const { runId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const run = useQuery(runQuery(runId));
  const update: ChangeDecision = (change) =>
    void navigate({ search: (before) => changeSearch(before, change), replace: true, resetScroll: false });
  return (
    <Loaded query={run} lines={8}>
      {(info) => (
        <PageBody>
          <Gate run={info} search={search} onChange={update} />
          <Plan run={info} search={search} onChange={update} />
          <History run={info} />
          <Rescore run={info} />
        </PageBody>
      )}
    </Loaded>
  );
}
