/** What ended a rollout without a score, what failed afterwards, and the attempts before this one. */
import type { RolloutView, RowError } from "#/api/types";
import { CodeBlock } from "#/design/CodeBlock";
import { showControls } from "#/parts/ansiText";
import { formatDuration } from "#/parts/format";
import { OutcomeMark } from "#/parts/Outcome";
import { words } from "#/words";
import { Part } from "./Details";
import styles from "./Errors.module.css";

export function Errors({ view }: { view: RolloutView }) {
  const text = words.rollout.details;
  return (
    <>
      {view.error && (
        <Part title={text.error} note={words.outcomeMeaning[view.entry.outcome]}>
          <ErrorText error={view.error} />
        </Part>
      )}
      {view.cleanup_error && (
        <Part title={text.cleanupError}>
          <ErrorText error={view.cleanup_error} />
        </Part>
      )}
      {view.earlier_attempts.length > 0 && (
        <Part title={text.attempts}>
          <ol className={styles.attempts}>
            {view.earlier_attempts.map((attempt, place) => (
              <li key={place} className={styles.attempt}>
                <span className={styles.line}>
                  {text.attempt(place + 1)}
                  <OutcomeMark outcome={attempt.outcome} />
                  <span className={styles.note}>{formatDuration(attempt.seconds)}</span>
                </span>
                <ErrorText error={attempt.error} />
              </li>
            ))}
          </ol>
        </Part>
      )}
    </>
  );
}

function ErrorText({ error }: { error: RowError }) {
  const { message = "", location = "", phase = "", traceback = [], error_chain_str: chain = "" } = error;
  return (
    <div className={styles.error}>
      <p className={styles.kind}>
        {showControls(error.error)}
        {phase && <span className={styles.note}>{showControls(phase)}</span>}
      </p>
      {message && <p className={styles.message}>{showControls(message)}</p>}
      {location && <p className={styles.note}>{showControls(location)}</p>}
      {chain && chain !== error.error && <p className={styles.note}>{showControls(chain)}</p>}
      {traceback.length > 0 && (
        <details>
          <summary className={styles.summary}>{words.rollout.details.traceback}</summary>
          <CodeBlock text={showControls(traceback.join("\n"))} label={words.rollout.details.traceback} wrap />
        </details>
      )}
    </div>
  );
}
