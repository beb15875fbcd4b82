/** A few lines of code or commands, to read and to copy. Long texts go to `LineView`. */
import type { ReactNode } from "react";
import styles from "./CodeBlock.module.css";
import { CopyButton } from "./CopyButton";
import { classes } from "./classes";

type Props = { text: string; label?: string; wrap?: boolean; children?: ReactNode };

/** `children` are the text in colours, where somebody has made them. */
export function CodeBlock({ text, label, wrap = false, children }: Props) {
  return (
    <div className={styles.block}>
      <pre
        className={classes(styles.text, wrap && styles.wrap)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        {...(label ? { role: "region", "aria-label": label } : {})}
      >
        <code>{children ?? text}</code>
      </pre>
      <div className={styles.copy}>
        <CopyButton text={text} />
      </div>
    </div>
  );
}
