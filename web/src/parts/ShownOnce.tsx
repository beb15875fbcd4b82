/** A value that the server shows only once: a token, or a link to hand over. */
import { Button } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { Dialog } from "#/design/Dialog";
import { Icon } from "#/design/Icon";
import styles from "./ShownOnce.module.css";

type Props = {
  title: string;
  value: string;
  /** What to do with it, and what becomes of it. */
  children: string;
  copy: string;
  done: string;
  onClose: () => void;
};

export function ShownOnce({ title, value, children, copy, done, onClose }: Props) {
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      footer={
        <Button look="primary" onClick={onClose}>
          {done}
        </Button>
      }
    >
      <div className={styles.once}>
        <p className={styles.warning}>
          <Icon name="alert" />
          {children}
        </p>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a long value scrolls */}
        <code className={styles.value} tabIndex={0}>
          {value}
        </code>
        <CopyButton text={value} label={copy} />
      </div>
    </Dialog>
  );
}
