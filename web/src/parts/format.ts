/** Numbers, money, times and sizes as people read them, in the browser's language. Knows nothing of React. */

const MISSING = "–";
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

const decimal = (digits: number) => new Intl.NumberFormat(undefined, { maximumFractionDigits: digits });
const compact = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 3 });
const whole = decimal(0);
const percent = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const dayAndYear = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

type Figure = number | null | undefined;

const isMissing = (value: Figure): value is null | undefined =>
  value === null || value === undefined || !Number.isFinite(value);

/** A score: three decimals for everyday values, significant digits for very small or large ones. */
export function formatScore(value: Figure): string {
  if (isMissing(value)) return MISSING;
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100_000)) return value.toPrecision(3).replace(/^-/, "−");
  const options = {
    minimumFractionDigits: Number.isInteger(value) && size > 1 ? 0 : size < 10 ? 3 : 1,
    maximumFractionDigits: size < 10 ? 3 : 1,
    roundingMode: "halfEven", // as the command line rounds, so that both show the same figure
  };
  return new Intl.NumberFormat(undefined, options as Intl.NumberFormatOptions)
    .format(value)
    .replace(/^-/, "−");
}

export function formatPercent(share: Figure): string {
  if (isMissing(share)) return MISSING;
  // 99.96% is not all of it: rounding must not claim what did not happen.
  if (share < 1 && share > 0.999) return `>${percent.format(0.999)}`;
  if (share > 0 && share < 0.001) return `<${percent.format(0.001)}`;
  return percent.format(share);
}

export const formatCount = (value: Figure): string => (isMissing(value) ? MISSING : whole.format(value));

export const formatCompact = (value: Figure): string =>
  isMissing(value) ? MISSING : Math.abs(value) < 1000 ? whole.format(value) : compact.format(value);

export const formatNumber = (value: Figure, digits = 3): string =>
  isMissing(value) ? MISSING : decimal(digits).format(value);

/** Dollars: cents for amounts people pay, two significant digits for what one call costs. */
export function formatMoney(usd: Figure): string {
  if (isMissing(usd)) return MISSING;
  const size = Math.abs(usd);
  const digits = size === 0 || size >= 0.995 ? 2 : Math.min(8, Math.max(2, 1 - Math.floor(Math.log10(size))));
  const options = {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  };
  return new Intl.NumberFormat(undefined, options as Intl.NumberFormatOptions).format(usd);
}

/** A span of time by its two largest units. */
export function formatDuration(seconds: Figure): string {
  if (isMissing(seconds) || seconds < 0) return MISSING;
  if (seconds < 1) return `${whole.format(seconds * 1000)} ms`;
  if (seconds < 10) return `${decimal(1).format(seconds)} s`;
  const total = Math.round(seconds);
  if (total < MINUTE) return `${total} s`;
  const two = (value: number) => String(value).padStart(2, "0");
  if (total < HOUR) return `${Math.floor(total / MINUTE)}m ${two(total % MINUTE)}s`;
  if (total < DAY) return `${Math.floor(total / HOUR)}h ${two(Math.floor((total % HOUR) / MINUTE))}m`;
  return `${Math.floor(total / DAY)}d ${two(Math.floor((total % DAY) / HOUR))}h`;
}

export const formatTime = (at: Figure): string => (isMissing(at) ? MISSING : dateTime.format(at * 1000));

/** The time of day alone, for lines of a log. */
export const formatClock = (at: Figure): string => (isMissing(at) ? MISSING : clock.format(at * 1000));

/** How long ago, or the date where that is clearer. */
export function formatAgo(at: Figure, now: number): string {
  if (isMissing(at)) return MISSING;
  const age = now - at;
  if (age < 0 && age > -5) return relative.format(0, "second");
  const size = Math.abs(age);
  if (size < MINUTE) return relative.format(-Math.round(age / 5) * 5, "second");
  if (size < HOUR) return relative.format(-Math.round(age / MINUTE), "minute");
  if (size < DAY) return relative.format(-Math.round(age / HOUR), "hour");
  if (size < 7 * DAY) return relative.format(-Math.round(age / DAY), "day");
  const sameYear = new Date(at * 1000).getFullYear() === new Date(now * 1000).getFullYear();
  return (sameYear ? day : dayAndYear).format(at * 1000);
}

export function formatBytes(bytes: Figure): string {
  if (isMissing(bytes)) return MISSING;
  if (bytes < 1000) return `${whole.format(bytes)} B`;
  const power = Math.min(4, Math.floor(Math.log10(bytes) / 3));
  return `${decimal(1).format(bytes / 1000 ** power)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

/** An interval as people write it: low – high. */
export const formatRange = (low: Figure, high: Figure): string =>
  `${formatScore(low)} – ${formatScore(high)}`;
