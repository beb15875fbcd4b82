/** What the run will take, and how precise its result will be. */
import type { Estimate } from "#/api/types";
import { Facts } from "#/design/Facts";
import { Skeleton } from "#/design/Skeleton";
import { formatCompact, formatCount, formatDuration, formatMoney, formatScore } from "#/parts/format";
import { formatPredicted } from "./figures";
import type { Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const say = text.review;
const MINUTE = 60;

export function EstimateFacts({ wizard, brief = false }: { wizard: Wizard; brief?: boolean }) {
  const { estimate, isBlocked } = wizard.server;
  if (!estimate)
    return isBlocked ? (
      <p className={brief ? styles.brief : styles.soft}>{say.estimateFails}</p>
    ) : (
      <Skeleton lines={3} />
    );
  if (brief)
    return (
      <p className={styles.brief} aria-live="polite">
        {say.brief(describeSize(estimate), describeCost(estimate), describeHalfwidth(estimate))}
      </p>
    );
  return (
    <div className={styles.stack}>
      <Facts
        facts={[
          { name: say.rollouts, value: describeSize(estimate) },
          { name: say.calls, value: formatPredicted(estimate.calls, (value) => formatCount(value)) },
          { name: say.tokens, value: describeTokens(estimate) },
          {
            name: say.time,
            value: formatPredicted(estimate.minutes, (value) => formatDuration(value * MINUTE)),
          },
          { name: say.cost, value: describeCost(estimate) },
          { name: say.after, value: describeAfter(estimate) },
        ]}
      />
      <p className={styles.soft}>
        {estimate.basis} {!saysTheSame(estimate) && estimate.volume_basis}
      </p>
    </div>
  );
}

const saysTheSame = ({ basis, volume_basis: other }: Estimate): boolean =>
  basis.startsWith(other.replace(/\.$/, ""));

export function describeSize(estimate: Estimate): string {
  if (estimate.tasks === null || estimate.rollouts === null) return say.unknown;
  const { tasks, rollouts_per_task: each, rollouts } = estimate;
  return say.product(formatCount(tasks), formatCount(each), formatCount(rollouts));
}

function describeTokens(estimate: Estimate): string {
  if (!estimate.input_tokens && !estimate.output_tokens) return say.unknown;
  const figure = (value: number) => formatCompact(value);
  return say.tokenPair(
    formatPredicted(estimate.input_tokens, figure),
    formatPredicted(estimate.output_tokens, figure),
  );
}

export function describeCost(estimate: Estimate): string {
  const { low_usd: low, likely_usd: likely, high_usd: high } = estimate;
  return formatPredicted(likely === null ? null : { likely, low, high }, formatMoney);
}

function describeAfter(estimate: Estimate): string {
  const { available_usd: available, after_usd: after, high_usd: high } = estimate;
  if (available === null) return say.noLimit(estimate.payer);
  if (after === null) return say.unknown;
  const worst = high === null ? null : available - high;
  return worst === null || worst === after
    ? formatMoney(after)
    : `${formatMoney(after)} (${say.afterWorst(formatMoney(worst))})`;
}

export function describeHalfwidth(estimate: Estimate): string {
  if (estimate.halfwidth === null) return say.unknown;
  const width = `± ${formatScore(estimate.halfwidth)}`;
  return estimate.halfwidth_is_bound ? `${say.bound} ${width}` : width;
}
