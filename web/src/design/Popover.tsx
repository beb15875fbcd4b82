/** A small panel that opens at its button and closes on Escape or a click elsewhere. */
import { Popover as Base } from "@base-ui/react/popover";
import type { ReactElement, ReactNode } from "react";
import styles from "./Popover.module.css";

type Props = { trigger: ReactElement; label: string; children: ReactNode; align?: "start" | "end" };

export function Popover({ trigger, label, children, align = "start" }: Props) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align={align} className={styles.positioner}>
          <Base.Popup className={styles.popup} aria-label={label}>
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
