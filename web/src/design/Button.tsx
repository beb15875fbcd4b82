/** Buttons, and links that look like them. One primary button per view; quiet ones stand in toolbars. */
import type { ComponentProps, ReactNode } from "react";
import styles from "./Button.module.css";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";

export type ButtonLook = "primary" | "plain" | "quiet" | "danger";

type Common = { look?: ButtonLook; icon?: IconName; small?: boolean };

export const buttonClass = (look: ButtonLook = "plain", small = false) =>
  classes(styles.button, styles[look], small && styles.small);

export function Button({
  look,
  icon,
  small,
  children,
  className,
  ...rest
}: Common & ComponentProps<"button">) {
  return (
    <button type="button" {...rest} className={classes(buttonClass(look, small), className)}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button that shows only an icon; its label is spoken, and shown as its title. */
export function IconButton(
  props: { label: string; icon: IconName; children?: ReactNode } & ComponentProps<"button">,
) {
  const { label, icon, className, children, ...rest } = props;
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={classes(buttonClass("quiet"), styles.iconOnly, className)}
    >
      <Icon name={icon} />
      {children}
    </button>
  );
}
