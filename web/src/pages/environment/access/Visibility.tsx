/** Whether everyone on the server can read it, and the change of that, which asks first. */
import { useState } from "react";
import { useChange } from "#/api/change";
import { ENVIRONMENTS_KEY, environmentKey } from "#/api/environmentKeys";
import { changeEnvironment, slugOf } from "#/api/environments";
import { Section } from "#/design/Section";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { RefusableButton } from "#/parts/RefusableButton";
import { useEnvironment } from "../context";
import { explainRole } from "../rights";
import { text } from "../words";

const words = text.access;

export function Visibility() {
  const shown = useEnvironment();
  const { environment, slug } = shown;
  const [isOpen, setOpen] = useState(false);
  const isPublic = environment.visibility === "public";
  const change = useChange({
    send: (visibility: "public" | "private") => changeEnvironment(slug, { visibility }),
    refresh: [environmentKey(slugOf(slug)), ENVIRONMENTS_KEY],
    onDone: () => setOpen(false),
  });
  const action = isPublic ? words.makePrivate : words.makePublic;
  return (
    <Section
      title={words.visibility}
      note={text.visibility[environment.visibility]}
      actions={
        <RefusableButton small reason={explainRole(shown, "owner")} onClick={() => setOpen(true)}>
          {action}
        </RefusableButton>
      }
    >
      <p>{isPublic ? words.isPublic : words.isPrivate}</p>
      <ConfirmDialog
        open={isOpen}
        onClose={() => {
          change.reset();
          setOpen(false);
        }}
        title={isPublic ? words.privateTitle : words.publicTitle}
        action={action}
        look="primary"
        onConfirm={() => change.submit(isPublic ? "private" : "public")}
        isBusy={change.isBusy}
        error={change.error}
      >
        <p>{isPublic ? words.privateText : words.publicText}</p>
      </ConfirmDialog>
    </Section>
  );
}
