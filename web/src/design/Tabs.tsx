/** Tabs inside a page. The parts of a run are links instead: see `LinkTabs`. */
import { Tabs as Base } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import styles from "./Tabs.module.css";

export type Tab = { value: string; label: ReactNode; content: ReactNode };

type Props = { tabs: readonly Tab[]; value: string; onChange: (value: string) => void; label: string };

export function Tabs({ tabs, value, onChange, label }: Props) {
  return (
    <Base.Root value={value} onValueChange={(next) => onChange(String(next))} className={styles.root}>
      <Base.List className={styles.list} aria-label={label}>
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className={styles.tab}>
            {tab.label}
          </Base.Tab>
        ))}
      </Base.List>
      {tabs.map((tab) => (
        <Base.Panel key={tab.value} value={tab.value} className={styles.panel}>
          {tab.content}
        </Base.Panel>
      ))}
    </Base.Root>
  );
}
