/** Durations, money, tokens and times, formatted, with the exact value as their title. */
import { useNow } from "#/app/clock";
import { formatAgo, formatCompact, formatCount, formatDuration, formatMoney, formatTime } from "./format";

type Figure = number | null | undefined;

export const Duration = ({ seconds }: { seconds: Figure }) => (
  <span title={seconds == null ? undefined : `${formatCount(seconds)} s`}>{formatDuration(seconds)}</span>
);

/** How long something takes that may not have ended yet. */
export function Elapsed({ from, to }: { from: Figure; to: Figure }) {
  return to == null ? <Running from={from} /> : <Duration seconds={from == null ? null : to - from} />;
}

function Running({ from }: { from: Figure }) {
  const now = useNow(1);
  return <Duration seconds={from == null ? null : Math.max(0, Math.floor(now - from))} />;
}

export const Money = ({ usd }: { usd: Figure }) => (
  <span title={usd == null ? undefined : `$${usd}`}>{formatMoney(usd)}</span>
);

export const Tokens = ({ count }: { count: Figure }) => (
  <span title={formatCount(count)}>{formatCompact(count)}</span>
);

export function When({ at }: { at: Figure }) {
  const now = useNow(5);
  if (at == null) return <span>{formatTime(at)}</span>;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={formatTime(at)}>
      {formatAgo(at, now)}
    </time>
  );
}
