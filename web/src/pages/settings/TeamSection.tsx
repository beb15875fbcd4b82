/** One team: who is in it, as what, and what its admins may change. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { membersQuery, TEAM_KEY } from "#/api/account";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { Member, Membership } from "#/api/types";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { TextField } from "#/design/TextField";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { DataTable } from "#/parts/DataTable";
import { FormDialog } from "#/parts/FormDialog";
import { Loaded } from "#/parts/Loaded";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./forms.module.css";
import { useAccount } from "./useAccount";
import { text } from "./words";

const words = text.teams;
const REFRESHED = [TEAM_KEY, ["session"]] as const;
const ROLES = ["member", "admin"] as const;

type Asked = "add" | "rename" | "delete" | { remove: Member } | null;

export function TeamSection({ team }: { team: Membership }) {
  const account = useAccount();
  const members = useQuery(membersQuery(team.team));
  const [asked, setAsked] = useState<Asked>(null);
  const admins = members.data?.filter((member) => member.role === "admin").map((member) => member.user) ?? [];
  const refusal =
    account.reason("environments:write", words.lacks) ??
    (team.role === "admin" || account.isAdmin ? null : words.onlyAdmins(admins.join(", ")));
  const close = () => setAsked(null);
  return (
    <Section
      title={team.team}
      note={words.roles[team.role]}
      flush
      actions={
        <>
          <RefusableButton
            small
            icon="plus"
            reason={refusal}
            aria-label={words.addTo(team.team)}
            onClick={() => setAsked("add")}
          >
            {words.add}
          </RefusableButton>
          <RefusableButton
            small
            reason={refusal}
            aria-label={words.renameOf(team.team)}
            onClick={() => setAsked("rename")}
          >
            {words.rename}
          </RefusableButton>
          <RefusableButton
            small
            look="danger"
            reason={refusal}
            aria-label={words.deleteOf(team.team)}
            onClick={() => setAsked("delete")}
          >
            {words.delete}
          </RefusableButton>
        </>
      }
    >
      <Loaded query={members} lines={2}>
        {(found) => (
          <MemberTable
            team={team.team}
            members={found}
            refusal={refusal}
            onRemove={(member) => setAsked({ remove: member })}
          />
        )}
      </Loaded>
      {asked === "add" && <AddDialog team={team.team} onClose={close} />}
      {asked === "rename" && <RenameDialog team={team.team} onClose={close} />}
      {asked === "delete" && <DeleteDialog team={team.team} onClose={close} />}
      {asked !== null && typeof asked === "object" && (
        <RemoveDialog team={team.team} member={asked.remove} onClose={close} />
      )}
    </Section>
  );
}

type TableProps = {
  team: string;
  members: readonly Member[];
  refusal: string | null;
  onRemove: (member: Member) => void;
};

function MemberTable({ team, members, refusal, onRemove }: TableProps) {
  const { name } = useAccount();
  const change = useChange<Member>({
    send: (member) =>
      read(api.PUT("/api/v1/teams/{team}/members", { params: { path: { team } }, body: member })),
    refresh: REFRESHED,
  });
  return (
    <>
      <DataTable
        label={team}
        columns={[
          {
            title: words.member,
            cell: (member) => (
              <>
                <span className={styles.name}>{member.user}</span>{" "}
                {member.user === name && <span className={styles.faint}>({words.you})</span>}
              </>
            ),
          },
          {
            title: words.role,
            cell: (member) =>
              refusal === null ? (
                <Select
                  label={words.roleOf(member.user)}
                  hideLabel
                  value={member.role ?? "member"}
                  options={ROLES.map((value) => ({ value, label: words.roles[value] ?? value }))}
                  onChange={(role) => change.submit({ user: member.user, role })}
                />
              ) : (
                words.roles[member.role ?? "member"]
              ),
          },
          {
            title: text.actions,
            isActions: true,
            cell: (member) => (
              <RefusableButton
                small
                reason={member.user === name ? null : refusal}
                aria-label={member.user === name ? words.leave : words.removeOf(member.user)}
                onClick={() => onRemove(member)}
              >
                {member.user === name ? words.leave : words.remove}
              </RefusableButton>
            ),
          },
        ]}
        rows={members}
        keyOf={(member) => member.user}
        empty={null}
      />
      <Problem error={change.error} />
    </>
  );
}

function AddDialog({ team, onClose }: { team: string; onClose: () => void }) {
  const [user, setUser] = useState("");
  const [role, setRole] = useState<(typeof ROLES)[number]>("member");
  const add = useChange<Member>({
    send: (member) =>
      read(api.PUT("/api/v1/teams/{team}/members", { params: { path: { team } }, body: member })),
    refresh: REFRESHED,
    onDone: onClose,
  });
  return (
    <FormDialog
      title={words.addTo(team)}
      onClose={onClose}
      action={words.addAction}
      onSubmit={() => add.submit({ user: user.trim(), role })}
      isBusy={add.isBusy}
      error={add.error}
      fields={["user"]}
    >
      <TextField
        label={words.member}
        hint={words.userHint}
        value={user}
        required
        autoComplete="off"
        spellCheck={false}
        error={add.problems.user}
        onChange={(event) => setUser(event.target.value)}
      />
      <Select
        label={words.role}
        value={role}
        options={ROLES.map((value) => ({ value, label: words.roles[value] ?? value }))}
        onChange={setRole}
      />
    </FormDialog>
  );
}

function RenameDialog({ team, onClose }: { team: string; onClose: () => void }) {
  const [name, setName] = useState(team);
  const rename = useChange<string>({
    send: (given) =>
      read(api.PATCH("/api/v1/teams/{team}", { params: { path: { team } }, body: { name: given } })),
    refresh: REFRESHED,
    onDone: onClose,
  });
  return (
    <FormDialog
      title={words.renameOf(team)}
      onClose={onClose}
      action={words.rename}
      onSubmit={() => rename.submit(name.trim())}
      isBusy={rename.isBusy}
      error={rename.error}
      fields={["name"]}
    >
      <p>{words.renameText}</p>
      <TextField
        label={words.name}
        hint={words.nameHint}
        value={name}
        required
        autoComplete="off"
        spellCheck={false}
        error={rename.problems.name}
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  );
}

function DeleteDialog({ team, onClose }: { team: string; onClose: () => void }) {
  const remove = useChange({
    send: () => read(api.DELETE("/api/v1/teams/{team}", { params: { path: { team } } })),
    refresh: REFRESHED,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={words.deleteTitle(team)}
      action={words.delete}
      typed={team}
      onConfirm={() => remove.submit()}
      isBusy={remove.isBusy}
      error={remove.error}
    >
      <p>{words.deleteText}</p>
    </ConfirmDialog>
  );
}

function RemoveDialog({ team, member, onClose }: { team: string; member: Member; onClose: () => void }) {
  const { name } = useAccount();
  const isSelf = member.user === name;
  const remove = useChange({
    send: () =>
      read(
        api.DELETE("/api/v1/teams/{team}/members/{user}", { params: { path: { team, user: member.user } } }),
      ),
    refresh: REFRESHED,
    onDone: onClose,
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={isSelf ? words.leaveTitle(team) : words.removeTitle(member.user, team)}
      action={isSelf ? words.leave : words.remove}
      onConfirm={() => remove.submit()}
      isBusy={remove.isBusy}
      error={remove.error}
    >
      <p>{isSelf ? words.leaveText : words.removeText}</p>
    </ConfirmDialog>
  );
}
