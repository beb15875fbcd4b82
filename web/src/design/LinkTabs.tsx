/** The parts of a thing as links, each with an address of its own. */
import type { ReactNode } from "react";
import styles from "./Tabs.module.css";

export function LinkTabs({ label, children }: { label: string; children: ReactNode }) {
  return (
    <nav className={`${styles.list} ${styles.links}`} aria-label={label}>
      {children}
    </nav>
  );
}

/** For the links inside: `<Link className={tabLinkClass} activeProps={tabLinkActive} …>`. */
export const tabLinkClass = styles.tab ?? "";
export const tabLinkActive = { "aria-current": "page" } as const;
