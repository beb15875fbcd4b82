/** The parts of a thing as links, each with an address of its own. */
import type { ReactNode } from "react";
import { useCurrentInView } from "#/app/useCurrentInView";
import styles from "./Tabs.module.css";

export function LinkTabs({ label, children }: { label: string; children: ReactNode }) {
  const row = useCurrentInView();
  return (
    <nav ref={row} className={`${styles.list} ${styles.links}`} aria-label={label}>
      {children}
    </nav>
  );
}

/** For the links inside: `<Link className={tabLinkClass} activeProps={tabLinkActive} …>`. */
export const tabLinkClass = styles.tab ?? "";
export const tabLinkActive = { "aria-current": "page" } as const;
