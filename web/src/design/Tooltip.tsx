/** A short explanation at a word or a figure, on hover and on focus. Never the only way to learn something. */
import { Tooltip as Base } from "@base-ui/react/tooltip";
import type { ReactNode } from "react";
import styles from "./Tooltip.module.css";

export const TooltipProvider = ({ children }: { children: ReactNode }) => (
  <Base.Provider delay={300}>{children}</Base.Provider>
);

/** The trigger takes keyboard focus unless what it holds already does. */
export function Tooltip(props: { text: ReactNode; children: ReactNode; focusable?: boolean }) {
  return (
    <Base.Root>
      <Base.Trigger
        render={<span className={styles.trigger} tabIndex={props.focusable === false ? undefined : 0} />}
      >
        {props.children}
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner sideOffset={6} className={styles.positioner}>
          <Base.Popup className={styles.popup}>{props.text}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}
