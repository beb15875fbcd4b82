/** A word with a shape and a colour; the shape and the word stand where the colour is not seen. */
import type { ReactNode } from "react";
import styles from "./Badge.module.css";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";

export type Tone = "good" | "bad" | "warn" | "info" | "violet" | "neutral" | "accent";

export function Badge(props: { tone?: Tone; icon?: IconName; pulse?: boolean; children: ReactNode }) {
  return (
    <span className={classes(styles.badge, styles[props.tone ?? "neutral"])}>
      {props.icon && (
        <span className={classes(styles.icon, props.pulse && styles.pulse)}>
          <Icon name={props.icon} size={14} />
        </span>
      )}
      {props.children}
    </span>
  );
}

/** The same without a background, for table cells. */
export function Mark(props: { tone?: Tone; icon: IconName; pulse?: boolean; children: ReactNode }) {
  return (
    <span className={styles.mark}>
      <span
        className={classes(
          styles.icon,
          styles.ink,
          styles[props.tone ?? "neutral"],
          props.pulse && styles.pulse,
        )}
      >
        <Icon name={props.icon} size={14} />
      </span>
      <span className={styles.text}>{props.children}</span>
    </span>
  );
}
