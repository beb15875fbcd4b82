/** A part of a page with its heading; and a page's own heading. */
import type { ReactNode } from "react";
import { classes } from "./classes";
import styles from "./Section.module.css";

type SectionProps = {
  title: ReactNode;
  note?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  flush?: boolean;
};

export function Section({ title, note, actions, children, flush = false }: SectionProps) {
  return (
    <section className={styles.section}>
      <header className={styles.header}>
        <h2 className={styles.title}>{title}</h2>
        {note && <span className={styles.note}>{note}</span>}
        {actions && <div className={styles.actions}>{actions}</div>}
      </header>
      <div className={classes(styles.body, flush && styles.flush)}>{children}</div>
    </section>
  );
}

export function PageHeader(props: {
  title: ReactNode;
  above?: ReactNode;
  below?: ReactNode;
  actions?: ReactNode;
  /** Of a tab, below the heading of the page. */
  isPart?: boolean;
}) {
  const Heading = props.isPart ? "h2" : "h1";
  return (
    <header className={styles.page}>
      {props.above && <div className={styles.above}>{props.above}</div>}
      <div className={styles.pageLine}>
        <Heading className={styles.pageTitle}>{props.title}</Heading>
        {props.actions && <div className={styles.actions}>{props.actions}</div>}
      </div>
      {props.below && <div className={styles.below}>{props.below}</div>}
    </header>
  );
}

/** A page whose content scrolls with the window, at a width that reads well. */
export const PageBody = ({ children }: { children: ReactNode }) => (
  <div className={styles.pageBody}>{children}</div>
);

/** A page that fills the window, whose table or log scrolls inside. */
export const FullPage = ({ children }: { children: ReactNode }) => (
  <div className={styles.fullPage}>{children}</div>
);
