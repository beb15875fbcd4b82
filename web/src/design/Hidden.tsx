/** Words for screen readers, where the eye has a shape or a place instead. */
import type { ReactNode } from "react";
import styles from "./Hidden.module.css";

export const Hidden = ({ children }: { children: ReactNode }) => (
  <span className={styles.hidden}>{children}</span>
);
