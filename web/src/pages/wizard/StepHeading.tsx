/** The heading of a step, which takes the focus when the step is reached, and the way back. */
import { useEffect, useRef } from "react";
import { Button } from "#/design/Button";
import { previousStep, type Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

export function BackButton({ wizard }: { wizard: Wizard }) {
  const before = previousStep(wizard.step);
  return before ? (
    <Button icon="arrowLeft" onClick={() => wizard.go(before)}>
      {text.back}
    </Button>
  ) : null;
}

/** The focus follows the steps, so that the next key is pressed where the eye is. */
export function StepHeading({ wizard }: { wizard: Wizard }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(wizard.step);
  useEffect(() => {
    if (shown.current !== wizard.step) heading.current?.focus();
    shown.current = wizard.step;
  }, [wizard.step]);
  return (
    <h2 ref={heading} tabIndex={-1} className={styles.heading}>
      {text.step[wizard.step]}
    </h2>
  );
}
