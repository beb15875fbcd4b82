/** The reward of a rollout, and which function gave what. */
import type { RolloutView, Subscore } from "#/api/types";
import { showControls } from "#/parts/ansiText";
import { formatScore } from "#/parts/format";
import { words } from "#/words";
import { Part } from "./Details";
import styles from "./Reward.module.css";

export function Reward({ view }: { view: RolloutView }) {
  const { reward, metrics } = view.entry;
  const text = words.rollout.details;
  const names = new Set(view.subscores.map(({ name }) => name));
  const others = Object.entries(metrics).filter(([name]) => !names.has(name));
  return (
    <Part title={text.score}>
      {reward === null ? (
        <p className={styles.none}>{text.noReward}</p>
      ) : (
        <p className={styles.reward}>{formatScore(reward)}</p>
      )}
      {view.subscores.length > 0 && (
        <table className={styles.table} aria-label={text.parts}>
          <thead>
            <tr>
              <th scope="col">{text.part}</th>
              <th scope="col">{text.value}</th>
              <th scope="col">{text.weight}</th>
            </tr>
          </thead>
          <tbody>
            {view.subscores.map((part, place) => (
              <SubscoreRows key={place} part={part} depth={0} />
            ))}
          </tbody>
        </table>
      )}
      {others.length > 0 && (
        <table className={styles.table} aria-label={text.metrics}>
          <tbody>
            {others.map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{showControls(name)}</th>
                <td>{formatScore(value)}</td>
                <td />
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Part>
  );
}

const DEEPEST = 6;

function SubscoreRows({ part, depth }: { part: Subscore; depth: number }) {
  const { name, value, weight = 1, note = "", parts = [] } = part;
  return (
    <>
      <tr>
        <th scope="row" className={styles.name} data-depth={depth}>
          {showControls(name)}
          {note && <span className={styles.note}>{showControls(note)}</span>}
        </th>
        <td>{formatScore(value)}</td>
        <td className={weight === 0 ? styles.unweighted : undefined}>× {formatScore(weight)}</td>
      </tr>
      {depth < DEEPEST &&
        parts.map((each, place) => <SubscoreRows key={place} part={each} depth={depth + 1} />)}
    </>
  );
}
