/** Predicted figures as people read them. */
import type { Estimate, Interval } from "#/api/types";
import { formatNumber } from "#/parts/format";
import { text } from "./words";

type Predicted = NonNullable<Estimate["calls"]>;

/** A mean with half of its interval's width: 0.61 ± 0.04. */
export function formatHalfwidth(
  mean: number | null | undefined,
  interval: Interval | null | undefined,
): string {
  if (mean === null || mean === undefined) return "–";
  const center = formatNumber(mean, 2);
  return interval ? `${center} ± ${formatNumber((interval.high - interval.low) / 2, 2)}` : center;
}

/** The likely total, and where it ends up if that is known. */
export function formatPredicted(
  total: Predicted | null | undefined,
  format: (value: number) => string,
): string {
  if (!total) return text.review.unknown;
  const likely = format(total.likely);
  if (total.low !== null && total.high === null) return text.review.atLeast(format(total.low));
  if (total.low === null || total.high === null || format(total.low) === format(total.high)) return likely;
  return `${likely} (${text.review.range(format(total.low), format(total.high))})`;
}
