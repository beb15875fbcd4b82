/** Who may read a run: changed here, with the link to copy, to replace and to revoke. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useChange } from "#/api/change";
import { shareRun, sharingQuery } from "#/api/runActions";
import type { RunInfo, RunSharing, RunVisibility } from "#/api/types";
import { announce } from "#/app/announcer";
import { Button } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { Dialog } from "#/design/Dialog";
import { Select } from "#/design/Select";
import { TextField } from "#/design/TextField";
import { Loaded } from "#/parts/Loaded";
import { Problem } from "#/parts/Problem";
import styles from "./actions.module.css";
import { actionWords } from "./words";

const words = actionWords.share;
const CHOICES = ["private", "team", "readers", "link"] as const satisfies readonly RunVisibility[];

export function ShareDialog({ run, onClose }: { run: RunInfo; onClose: () => void }) {
  const sharing = useQuery(sharingQuery(run.id));
  return (
    <Dialog open onClose={onClose} title={words.title}>
      <Loaded query={sharing} lines={3}>
        {(known) => <ShareForm run={run} sharing={known} />}
      </Loaded>
    </Dialog>
  );
}

type Wanted = { visibility: RunVisibility; newLink: boolean };

function ShareForm({ run, sharing }: { run: RunInfo; sharing: RunSharing }) {
  const client = useQueryClient();
  const [chosen, setChosen] = useState<RunVisibility | null>(null);
  const visibility = chosen ?? sharing.visibility;
  const share = useChange<Wanted, RunSharing>({
    send: (wanted) => shareRun(client, run.id, wanted.visibility, wanted.newLink),
    onDone: () => {
      announce(words.saved);
      setChosen(null);
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    share.submit({ visibility, newLink: false });
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <Select
        label={words.label}
        hint={words.writers}
        error={share.problems.visibility}
        value={visibility}
        onChange={setChosen}
        options={CHOICES.map((value) => ({
          value,
          label: value === "team" && run.team === null ? words.noTeam : words.options[value],
          disabled: value === "team" && run.team === null,
        }))}
      />
      {sharing.link && (
        <>
          <TextField label={words.link} hint={words.linkHint} value={sharing.link} readOnly />
          <div className={styles.buttons}>
            <Button
              small
              disabled={share.isBusy}
              onClick={() =>
                share.submit({ visibility: run.team === null ? "private" : "team", newLink: false })
              }
            >
              {words.revoke}
            </Button>
            <Button
              small
              disabled={share.isBusy}
              onClick={() => share.submit({ visibility: "link", newLink: true })}
            >
              {words.replace}
            </Button>
            <CopyButton text={sharing.link} label={words.copy} />
          </div>
        </>
      )}
      <Problem error={share.error} fields={["visibility"]} />
      <div className={styles.buttons}>
        <Button
          type="submit"
          look="primary"
          disabled={share.isBusy || chosen === null || chosen === sharing.visibility}
        >
          {actionWords.save}
        </Button>
      </div>
    </form>
  );
}
