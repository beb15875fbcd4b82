/** A menu of actions or of things to switch on and off. */
import { Menu as Base } from "@base-ui/react/menu";
import type { ReactElement, ReactNode } from "react";
import { Icon, type IconName } from "./Icon";
import styles from "./Menu.module.css";

export function Menu({ trigger, children }: { trigger: ReactElement; children: ReactNode }) {
  return (
    <Base.Root modal={false}>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner sideOffset={4} align="end" className={styles.positioner}>
          <Base.Popup className={styles.popup}>{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

export function MenuItem(props: {
  icon?: IconName;
  hint?: string;
  onSelect: () => void;
  children: ReactNode;
}) {
  return (
    <Base.Item className={styles.item} onClick={props.onSelect}>
      <span className={styles.icon}>{props.icon && <Icon name={props.icon} />}</span>
      {props.children}
      {props.hint && <kbd className={styles.hint}>{props.hint}</kbd>}
    </Base.Item>
  );
}

/** Saves what an address answers with as a file. */
export function MenuDownload(props: { href: string; children: ReactNode }) {
  return (
    <Base.LinkItem className={styles.item} href={props.href} download closeOnClick>
      <span className={styles.icon}>
        <Icon name="download" />
      </span>
      {props.children}
    </Base.LinkItem>
  );
}

export function MenuCheck(props: {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ReactNode;
}) {
  return (
    <Base.CheckboxItem
      className={styles.item}
      checked={props.checked}
      onCheckedChange={props.onChange}
      closeOnClick={false}
    >
      <span className={styles.icon}>{props.checked && <Icon name="check" />}</span>
      {props.children}
    </Base.CheckboxItem>
  );
}

export function MenuGroup({ label, children }: { label: string; children: ReactNode }) {
  return (
    <Base.Group className={styles.group}>
      <Base.GroupLabel className={styles.label}>{label}</Base.GroupLabel>
      {children}
    </Base.Group>
  );
}
