/** A button that stays in its place when a person may not use it, and says why and who could grant it. */
import { type ComponentProps, useId } from "react";
import { Button } from "#/design/Button";
import { Hidden } from "#/design/Hidden";
import { Tooltip } from "#/design/Tooltip";

type Props = ComponentProps<typeof Button> & {
  /** A sentence; null if nothing stands in the way. */
  reason: string | null;
};

export function RefusableButton({ reason, onClick, ...rest }: Props) {
  const id = useId();
  if (reason === null) return <Button {...rest} onClick={onClick} />;
  return (
    <Tooltip text={reason} focusable={false}>
      <Button {...rest} type="button" aria-disabled aria-describedby={id} />
      <Hidden>
        <span id={id}>{reason}</span>
      </Hidden>
    </Tooltip>
  );
}
