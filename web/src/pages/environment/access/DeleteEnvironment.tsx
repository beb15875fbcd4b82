/** Deletes an environment, after its name was typed. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "#/api/change";
import { ENVIRONMENTS_KEY, environmentKey } from "#/api/environmentKeys";
import { deleteEnvironment, slugOf } from "#/api/environments";
import { Section } from "#/design/Section";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { RefusableButton } from "#/parts/RefusableButton";
import { useEnvironment } from "../context";
import { explainRole } from "../rights";
import { text } from "../words";

const words = text.access;

export function DeleteEnvironment() {
  const shown = useEnvironment();
  const { slug } = shown;
  const [isOpen, setOpen] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const change = useChange({
    send: (_: undefined) => deleteEnvironment(slug),
    refresh: [ENVIRONMENTS_KEY],
    onDone: () => {
      void navigate({ to: "/environments", search: { mine: true } }).then(() =>
        client.removeQueries({ queryKey: environmentKey(slugOf(slug)) }),
      );
    },
  });
  return (
    <Section
      title={words.deleteSection}
      actions={
        <RefusableButton
          look="danger"
          small
          reason={explainRole(shown, "owner")}
          onClick={() => setOpen(true)}
        >
          {words.delete}
        </RefusableButton>
      }
    >
      <p>{words.deleteNote}</p>
      <ConfirmDialog
        open={isOpen}
        onClose={() => {
          change.reset();
          setOpen(false);
        }}
        title={words.deleteTitle(slugOf(slug))}
        action={words.delete}
        onConfirm={() => change.submit(undefined)}
        isBusy={change.isBusy}
        error={change.error}
        typed={slugOf(slug)}
      >
        <p>{words.deleteText}</p>
      </ConfirmDialog>
    </Section>
  );
}
