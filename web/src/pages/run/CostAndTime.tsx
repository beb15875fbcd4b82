/** What a run cost and used, by model, and how long its rollouts took. */
import { useQuery } from "@tanstack/react-query";
import { distributionQuery } from "#/api/runs";
import type { RunInfo, Summary } from "#/api/types";
import { type Fact, Facts } from "#/design/Facts";
import { Section } from "#/design/Section";
import { NumberTable } from "#/parts/Chart";
import { Duration, Elapsed, Money, Tokens, When } from "#/parts/Figures";
import { formatDuration, formatMoney } from "#/parts/format";
import { Histogram } from "#/parts/Histogram";
import { Loaded } from "#/parts/Loaded";
import { words } from "#/words";
import styles from "./CostAndTime.module.css";

type Props = { run: RunInfo; summary: Summary };

export function CostSection({ run, summary }: Props) {
  const text = words.run.cost;
  const cost = run.cost_usd ?? summary.cost_usd;
  const perRollout = cost !== null && summary.finished > 0 ? cost / summary.finished : null;
  const models = { [run.model]: summary.usage, ...summary.other_usage };
  const rows = Object.entries(models).map(([model, usage]) => [
    model,
    <Tokens key="in" count={usage.input_tokens} />,
    <Tokens key="cached" count={usage.cached_tokens} />,
    <Tokens key="out" count={usage.output_tokens} />,
    <Tokens key="reasoning" count={usage.reasoning_tokens} />,
  ]);
  return (
    <Section
      title={text.title}
      note={summary.unpriced_models.length > 0 && text.unpriced(summary.unpriced_models)}
    >
      <div className={styles.block}>
        <Facts
          facts={[
            { name: text.total, value: <Money usd={cost} /> },
            perRollout !== null && { name: text.perRollout, value: formatMoney(perRollout) },
            Boolean(summary.saved_usd) && { name: text.saved, value: <Money usd={summary.saved_usd} /> },
            run.max_cost_usd !== null && { name: text.limit, value: <Money usd={run.max_cost_usd} /> },
          ]}
        />
        <NumberTable
          label={text.tokens}
          table={{ head: [text.model, text.input, text.cached, text.output, text.reasoning], rows }}
        />
      </div>
    </Section>
  );
}

export function TimingSection({ run, summary }: Props) {
  const text = words.run.timing;
  const seconds = useQuery(distributionQuery(run.id, { of: "seconds", bins: 24 }));
  const facts: (Fact | false)[] = [
    { name: text.created, value: <When at={run.created_at} /> },
    { name: text.took, value: <Elapsed from={run.started_at} to={run.ended_at} /> },
    run.timeout_minutes !== null && {
      name: text.limit,
      value: <Duration seconds={run.timeout_minutes * 60} />,
    },
    summary.seconds !== null && {
      name: text.rollout,
      value: text.spread(
        formatDuration(summary.seconds.median),
        formatDuration(summary.seconds.p90),
        formatDuration(summary.seconds.longest),
      ),
    },
    summary.retried > 0 && { name: text.retried, value: summary.retried },
    run.attempt > 1 && { name: text.attempts, value: run.attempt },
  ];
  return (
    <Section title={text.title}>
      <div className={styles.block}>
        <Facts facts={facts} />
        {summary.finished > 0 && (
          <Loaded query={seconds}>
            {(data) => (
              <Histogram distribution={data} label={text.rollout} format={formatDuration} height={100} />
            )}
          </Loaded>
        )}
      </div>
    </Section>
  );
}
