/** A formula as MathML, drawn into its element by temml; one that cannot be read is shown as it was written. */

import { useEffect, useRef, useState } from "react";
import temml from "temml";
import styles from "./Formula.module.css";

export function Formula({ tex, display }: { tex: string; display: boolean }) {
  const element = useRef<HTMLSpanElement>(null);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    try {
      temml.render(tex, element.current, {
        displayMode: display,
        throwOnError: true,
        trust: false,
        maxExpand: 200,
        maxSize: [20, 20],
      });
    } catch {
      setBroken(true);
    }
  }, [tex, display]);
  if (isBroken) return <code>{tex}</code>;
  return <span ref={element} className={display ? styles.display : undefined} />;
}
