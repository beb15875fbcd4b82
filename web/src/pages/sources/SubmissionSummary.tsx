/** What a submission will play, and what it may cost. */
import type { SelectedRows, SubmissionPreview } from "#/api/sources";
import { Facts } from "#/design/Facts";
import { formatCount, formatMoney } from "#/parts/format";
import styles from "./sources.module.css";
import { text } from "./words";

const names = text.submit.facts;

export function SubmissionSummary({ preview, rows }: { preview: SubmissionPreview; rows: SelectedRows }) {
  const { estimate } = preview;
  return (
    <section className={styles.ready} aria-label={text.submit.ready}>
      <h3>{text.submit.ready}</h3>
      <Facts
        facts={[
          {
            name: names.commit,
            value: `${preview.commit_sha.slice(0, 12)}${preview.branch ? ` (${preview.branch})` : ""}: ${preview.subject ?? ""}`,
          },
          { name: names.environment, value: `${preview.environment}@${preview.version}` },
          { name: names.model, value: preview.model },
          { name: names.rows, value: text.submit.plays(rows.dataset.selected_rows, rows.total, rows.rule) },
          { name: names.rollouts, value: formatCount(estimate.rollouts) },
          { name: names.cost, value: describeCost(estimate) },
          estimate.available_usd != null && {
            name: names.balance,
            value: formatMoney(estimate.available_usd),
          },
        ]}
      />
      <p className={styles.faint}>{estimate.basis}</p>
    </section>
  );
}

function describeCost({ likely_usd, low_usd, high_usd }: SubmissionPreview["estimate"]): string {
  if (likely_usd == null) return text.submit.free;
  return text.submit.about(formatMoney(likely_usd), formatMoney(low_usd), formatMoney(high_usd));
}
