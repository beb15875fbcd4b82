/** Copies a version under one's own name, or a team's. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useChange } from "#/api/change";
import { ENVIRONMENTS_KEY } from "#/api/environmentKeys";
import { forkEnvironment, slugOf } from "#/api/environments";
import { Select } from "#/design/Select";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { RefusableButton } from "#/parts/RefusableButton";
import { useEnvironment, versionOf } from "./context";
import { explainFork } from "./rights";
import { text } from "./words";

export function ForkButton() {
  const shown = useEnvironment();
  const { slug, version, user, teams } = shown;
  const names = [...(user === null ? [] : [user]), ...teams].filter((name) => name !== slug.owner);
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState<string | null>(null);
  const navigate = useNavigate();
  const where = chosen ?? names[0] ?? "";
  const change = useChange({
    send: (_: undefined, key) =>
      forkEnvironment(versionOf(slug, version ?? ""), where === user ? null : where, key),
    refresh: [ENVIRONMENTS_KEY],
    onDone: ({ owner, name }) => {
      setOpen(false);
      void navigate({ to: "/e/$owner/$name/readme", params: { owner, name } });
    },
  });
  const reason = explainFork(shown) ?? (names.length === 0 ? text.fork.isYours : null);
  return (
    <>
      <RefusableButton icon="copy" reason={reason} onClick={() => setOpen(true)}>
        {text.fork.action}
      </RefusableButton>
      <ConfirmDialog
        open={isOpen}
        onClose={() => {
          setOpen(false);
          change.reset();
        }}
        title={text.fork.title(slugOf(slug))}
        action={text.fork.submit}
        look="primary"
        onConfirm={() => change.submit(undefined)}
        isBusy={change.isBusy}
        error={change.error}
      >
        <p>{text.fork.text(version ?? "")}</p>
        <Select
          label={text.fork.where}
          value={where}
          options={names.map((name) => ({
            value: name,
            label: name === user ? text.fork.you(name) : text.fork.team(name),
          }))}
          onChange={setChosen}
        />
      </ConfirmDialog>
    </>
  );
}
