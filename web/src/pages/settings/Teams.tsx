/** The teams of an account, with their members. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { TEAM_KEY, teamsQuery } from "#/api/account";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { Section } from "#/design/Section";
import { TextField } from "#/design/TextField";
import { FormDialog } from "#/parts/FormDialog";
import { Loaded } from "#/parts/Loaded";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./forms.module.css";
import { TeamSection } from "./TeamSection";
import { useAccount } from "./useAccount";
import { text } from "./words";

const words = text.teams;

export function Teams() {
  const teams = useQuery(teamsQuery);
  const { reason } = useAccount();
  const [isNew, setNew] = useState(false);
  return (
    <>
      <Section
        title={words.title}
        note={words.note}
        actions={
          <RefusableButton
            look="primary"
            icon="plus"
            reason={reason("environments:write", words.lacks)}
            onClick={() => setNew(true)}
          >
            {words.create}
          </RefusableButton>
        }
      >
        <Loaded query={teams} lines={1}>
          {(found) =>
            found.length === 0 ? (
              <p className={styles.faint}>{words.none}</p>
            ) : (
              <p>{found.map(({ team }) => team).join(", ")}</p>
            )
          }
        </Loaded>
      </Section>
      {teams.data?.map((team) => (
        <TeamSection key={team.team} team={team} />
      ))}
      {isNew && <NewTeamDialog onClose={() => setNew(false)} />}
    </>
  );
}

function NewTeamDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const create = useChange<string>({
    send: (given, key) =>
      read(
        api.POST("/api/v1/teams", {
          body: { name: given },
          params: { header: { "Idempotency-Key": key } },
        }),
      ),
    refresh: [TEAM_KEY, ["session"]],
    onDone: onClose,
  });
  return (
    <FormDialog
      title={words.create}
      onClose={onClose}
      action={words.createAction}
      onSubmit={() => create.submit(name.trim())}
      isBusy={create.isBusy}
      error={create.error}
      fields={["name"]}
    >
      <TextField
        label={words.name}
        hint={words.nameHint}
        value={name}
        required
        autoComplete="off"
        spellCheck={false}
        error={create.problems.name}
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  );
}
