/** What stands where there is nothing yet: why, and the command that fills it. */
import type { ReactNode } from "react";
import { CodeBlock } from "./CodeBlock";
import styles from "./EmptyState.module.css";
import { Icon, type IconName } from "./Icon";

type Props = {
  icon?: IconName;
  title: string;
  children?: ReactNode;
  commands?: readonly string[];
  action?: ReactNode;
};

export function EmptyState({ icon = "list", title, children, commands = [], action }: Props) {
  return (
    <div className={styles.empty}>
      <span className={styles.icon}>
        <Icon name={icon} size={24} />
      </span>
      <h2 className={styles.title}>{title}</h2>
      {children && <div className={styles.text}>{children}</div>}
      {commands.length > 0 && <CodeBlock text={commands.join("\n")} />}
      {action}
    </div>
  );
}
