/** Every measure of every compared run: the reward, each environment, each metric. */
import { Badge } from "#/design/Badge";
import { classes } from "#/design/classes";
import { Section } from "#/design/Section";
import { formatScore } from "#/parts/format";
import { words } from "#/words";
import { DifferenceBar, findReach } from "./DifferenceBars";
import styles from "./Measures.module.css";
import { type ComparedPair, formatDifference, formatDifferences, formatP, VERDICT_LOOKS } from "./pairs";

const text = words.compare;
const head = text.measure;

type Props = {
  pairs: readonly ComparedPair[];
  metric: string | undefined;
  /** The metrics that tasks can be listed by. */
  listed: readonly string[];
  onMetric: (metric: string | undefined) => void;
};

export function Measures({ pairs, metric, listed, onMetric }: Props) {
  const lines = pairs.flatMap(({ run, name, comparison }) =>
    [comparison.reward, ...comparison.members, ...comparison.metrics].map((measure, index) => ({
      id: `${run}/${index}`,
      run: name,
      measure,
      metric: measure.member ? null : index === 0 ? undefined : measure.name,
    })),
  );
  const hasRuns = pairs.length > 1;
  const titles = [
    ...(hasRuns ? [head.run] : []),
    head.name,
    head.base,
    head.value,
    head.difference,
    head.interval,
    "",
    head.wins,
    head.smallest,
    head.p,
    head.verdict,
  ];
  return (
    <Section title={text.measures} note={text.measuresNote} flush>
      <table className={styles.table} aria-label={text.measures}>
        <thead>
          <tr>
            {titles.map((title, index) => (
              <th key={index} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ id, run, measure, metric: listable }) => {
            const isListed = listable === undefined || (listable !== null && listed.includes(listable));
            const isShown = listable !== null && listable === metric;
            const reach = findReach(
              lines.filter((each) => each.measure.name === measure.name).map((each) => each.measure),
            );
            const name = measure.member ? `${measure.name} · ${measure.member}` : measure.name;
            return (
              <tr key={id} className={classes(isShown && styles.shown)}>
                {hasRuns && <td>{run}</td>}
                <th scope="row">
                  {isListed ? (
                    <button
                      type="button"
                      className={styles.measure}
                      aria-pressed={isShown}
                      title={text.showBy(name)}
                      onClick={() => onMetric(listable ?? undefined)}
                    >
                      {name}
                    </button>
                  ) : (
                    name
                  )}
                </th>
                <td>{formatScore(measure.baseline)}</td>
                <td>{formatScore(measure.candidate)}</td>
                <td className={styles.difference}>{formatDifference(measure.difference)}</td>
                <td>
                  {measure.interval
                    ? formatDifferences(measure.interval.low, measure.interval.high)
                    : words.score.noInterval}
                </td>
                <td className={styles.bar}>
                  <DifferenceBar measure={measure} reach={reach} />
                </td>
                <td>
                  {measure.wins} / {measure.ties} / {measure.losses}
                </td>
                <td>{formatScore(measure.smallest_detectable)}</td>
                <td title={measure.tests > 1 ? text.unadjusted(formatP(measure.p)) : undefined}>
                  {formatP(measure.p_adjusted)}
                </td>
                <td>
                  <span title={measure.text}>
                    <Badge {...VERDICT_LOOKS[measure.verdict]}>{text.verdict[measure.verdict]}</Badge>
                  </span>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Section>
  );
}
