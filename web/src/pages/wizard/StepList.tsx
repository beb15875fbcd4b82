/** The steps, each one click away, with the problems that wait there. */
import { Badge } from "#/design/Badge";
import { classes } from "#/design/classes";
import { STEPS } from "./search";
import { countProblems, type Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

export function StepList({ wizard }: { wizard: Wizard }) {
  return (
    <nav aria-label={text.steps}>
      <ol className={styles.steps}>
        {STEPS.map((step, index) => {
          const count = countProblems(wizard.server.problems, step);
          return (
            <li key={step}>
              <button
                type="button"
                className={classes(styles.step, step === wizard.step && styles.current)}
                aria-current={step === wizard.step ? "step" : undefined}
                onClick={() => wizard.go(step)}
              >
                <span className={styles.number}>{index + 1}</span>
                {text.step[step]}
                {count > 0 && <Badge tone="bad">{text.problems(count)}</Badge>}
              </button>
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
