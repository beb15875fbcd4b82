/** A run in one decision line, then what it rests on. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Note } from "#/actions/Note";
import { distributionQuery, isActive, runQuery, summaryQuery } from "#/api/runs";
import type { RunInfo, Summary } from "#/api/types";
import { usePolling } from "#/app/feed";
import { PageBody, Section } from "#/design/Section";
import { Histogram } from "#/parts/Histogram";
import { Loaded } from "#/parts/Loaded";
import { OutcomeBar } from "#/parts/OutcomeBar";
import { PassAtK } from "#/parts/PassAtK";
import { words } from "#/words";
import { CauseNotice } from "./CauseNotice";
import { CostSection, TimingSection } from "./CostAndTime";
import { DecisionLine } from "./DecisionLine";
import { MemberSection, MetricSection } from "./Metrics";
import styles from "./Overview.module.css";
import { Provenance } from "./Provenance";
import { readSampleSearch } from "./samples/search";

const route = getRouteApi("/runs/$runId");

export function Overview() {
  const { runId } = route.useParams();
  const run = useQuery(runQuery(runId));
  const isLive = run.data ? isActive(run.data.status) : false;
  const polling = usePolling();
  const summary = useQuery({ ...summaryQuery(runId), refetchInterval: isLive && polling });
  return (
    <Loaded query={run} lines={8}>
      {(info) => (
        <PageBody>
          <CauseNotice run={info} />
          <Note run={info} />
          <Loaded query={summary} lines={8}>
            {(data) => <Results run={info} summary={data} />}
          </Loaded>
          <Provenance run={info} />
        </PageBody>
      )}
    </Loaded>
  );
}

function Results({ run, summary }: { run: RunInfo; summary: Summary }) {
  const ks = Object.keys(summary.pass_at_k).length;
  return (
    <>
      <DecisionLine run={run} summary={summary} />
      <div className={styles.columns}>
        <Section title={words.run.outcomes}>
          <OutcomeBar
            outcomes={summary.outcomes}
            planned={summary.planned}
            link={(outcome, children) => (
              <Link
                to="/runs/$runId/samples"
                params={{ runId: run.id }}
                search={readSampleSearch({ outcome })}
              >
                {children}
              </Link>
            )}
          />
        </Section>
        <RewardSection run={run} summary={summary} />
        {ks > 1 && (
          <Section title={words.charts.passAtK} note={words.run.passThreshold(summary.pass_threshold)}>
            <PassAtK anyOf={summary.pass_at_k} allOf={summary.pass_hat_k} />
          </Section>
        )}
        <MetricSection summary={summary} />
        <MemberSection summary={summary} />
        <CostSection run={run} summary={summary} />
        <TimingSection run={run} summary={summary} />
      </div>
    </>
  );
}

function RewardSection({ run, summary }: { run: RunInfo; summary: Summary }) {
  const distribution = useQuery(distributionQuery(run.id, { of: "reward", bins: 20 }));
  if (summary.scored === 0) return null;
  return (
    <Section
      title={words.run.distribution}
      note={words.run.passRate(summary.scores.passed, summary.scores.graded, summary.pass_threshold)}
    >
      <Loaded query={distribution}>
        {(data) => <Histogram distribution={data} label={words.run.distribution} />}
      </Loaded>
    </Section>
  );
}
