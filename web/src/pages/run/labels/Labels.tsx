/** People's scores of a run's rollouts, and whether its judge agrees with them. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { labellingQuery } from "#/api/labels";
import { runQuery } from "#/api/runs";
import { sessionQuery } from "#/api/session";
import type { LabellingQueue } from "#/api/types";
import { PageBody, Section } from "#/design/Section";
import { NumberTable } from "#/parts/Chart";
import { formatCount } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { Agreement } from "./Agreement";
import { Labelling } from "./Labelling";
import { labelWords } from "./words";

const route = getRouteApi("/runs/$runId/labels");
const text = labelWords.label;

export function Labels() {
  const { runId } = route.useParams();
  const run = useQuery(runQuery(runId));
  const session = useQuery(sessionQuery);
  const person = session.data?.user?.name;
  const queue = useQuery({ ...labellingQuery(runId, person), enabled: !session.isPending });
  return (
    <Loaded query={run} lines={8}>
      {(info) => (
        <PageBody>
          <Loaded query={queue} lines={6}>
            {(data) => (
              <>
                <Labelling run={info} session={session.data ?? null} queue={data} />
                <Agreement run={info} hasLabels={data.people.some((each) => each.scored > 0)} />
                {data.people.length > 0 && <People queue={data} />}
              </>
            )}
          </Loaded>
        </PageBody>
      )}
    </Loaded>
  );
}

function People({ queue }: { queue: LabellingQueue }) {
  const rows = queue.people.map((each) => [each.person, formatCount(each.scored), formatCount(each.skipped)]);
  return (
    <Section title={text.people}>
      <NumberTable label={text.people} table={{ head: [text.person, text.scored, text.skipped], rows }} />
    </Section>
  );
}
