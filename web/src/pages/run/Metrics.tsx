/** The metrics of a run with their intervals; and the same for each environment that ran as part of it. */
import type { Summary } from "#/api/types";
import { Section } from "#/design/Section";
import { IntervalBars } from "#/parts/IntervalBars";
import { words } from "#/words";

export function MetricSection({ summary }: { summary: Summary }) {
  const lines = Object.entries(summary.metrics).map(([name, estimate]) => ({
    id: name,
    name,
    mean: estimate.mean,
    interval: estimate.interval,
  }));
  if (lines.length === 0) return null;
  return (
    <Section title={words.run.metrics}>
      <IntervalBars label={words.run.metrics} lines={lines} unlike />
    </Section>
  );
}

export function MemberSection({ summary }: { summary: Summary }) {
  const members = Object.entries(summary.members);
  if (members.length === 0) return null;
  const lines = members.map(([name, { reward }]) => ({
    id: name,
    name,
    mean: reward.mean,
    interval: reward.interval,
  }));
  return (
    <Section title={words.run.members}>
      <IntervalBars label={words.run.members} lines={lines} />
    </Section>
  );
}
